/**
 * Builds the executable schema: the platform's schema merged with those of the folder, validated, with a
 * resolver for each field. Mistakes in a file are reported with file and line; only that file is omitted.
 */

import { buildASTSchema, type GraphQLSchema, validateSchema } from 'graphql'
import { nextTurn } from '#base/load/yielding.ts'
import { coreQueries } from '#plugins/search/schema/core-queries.ts'
import { coreTypes } from '#plugins/search/schema/core-types.ts'
import { type Model, toModel } from '#plugins/search/schema/model.ts'
import { mergeSchemas, type SchemaMistake, type SchemaText } from '#plugins/search/schema/schema-merge.ts'
import { resolveBy } from './resolvers.ts'
import { liveFields } from './subscribers.ts'

export interface RunningSchema {
  readonly schema: GraphQLSchema
  readonly model: Model
  readonly mistakes: readonly SchemaMistake[]
}

const own: SchemaText = { name: 'the platform schema', text: coreTypes + coreQueries }

/** Yields between steps: the first build takes 50 ms in total. */
export async function buildSchema(others: readonly SchemaText[]): Promise<RunningSchema> {
  await nextTurn()
  const { document, mistakes, broad } = mergeSchemas(own, others)
  await nextTurn()
  const schema = buildASTSchema(document, { assumeValidSDL: true })
  await nextTurn()
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
    const rest = await buildSchema(kept.length === others.length ? [] : kept)
    return { ...rest, mistakes: [...mistakes, mistake, ...rest.mistakes.filter((one) => one.file !== file)] }
  }
  if (error !== undefined) throw error
  const model = toModel(document, broad)
  resolveBy(schema, model)
  liveFields(schema, model)
  return { schema, model, mistakes }
}
