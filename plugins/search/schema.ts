/**
 * The schema that runs: that of the platform with those of the folder, checked, with a resolver behind every field.
 * What is wrong in a file is told with file and line; the file is left out and everything else is served.
 */
import { buildASTSchema, type GraphQLSchema, validateSchema } from 'graphql'
import { coreQueries } from './core-queries.ts'
import { coreTypes } from './core-types.ts'
import { type Model, toModel } from './model.ts'
import { resolveBy } from './resolvers.ts'
import { mergeSchemas, type SchemaMistake, type SchemaText } from './schema-merge.ts'
import { liveFields } from './subscribers.ts'

export interface RunningSchema {
  readonly schema: GraphQLSchema
  readonly model: Model
  readonly mistakes: readonly SchemaMistake[]
}

const own: SchemaText = { name: 'the schema of the platform', text: coreTypes + coreQueries }

export function buildSchema(others: readonly SchemaText[]): RunningSchema {
  const { document, mistakes, broad } = mergeSchemas(own, others)
  const schema = buildASTSchema(document, { assumeValidSDL: true })
  const [error] = validateSchema(schema)
  if (error !== undefined && others.length > 0) {
    const [at] = error.locations ?? []
    const file = error.source?.name ?? ''
    const mistake = {
      file,
      place: at === undefined ? file : `${file}:${at.line}:${at.column}`,
      message: error.message,
    }
    const kept = others.filter(({ name }) => name !== file)
    const rest = buildSchema(kept.length === others.length ? [] : kept)
    return { ...rest, mistakes: [...mistakes, mistake, ...rest.mistakes.filter((one) => one.file !== file)] }
  }
  if (error !== undefined) throw error
  const model = toModel(document, broad)
  resolveBy(schema, model)
  liveFields(schema, model)
  return { schema, model, mistakes }
}
