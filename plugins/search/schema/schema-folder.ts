/**
 * Reads the folder of additional schemas: files `*.graphqls` and `*.graphql`, sorted by name, limited in
 * number and size. Files that cannot be read are reported and omitted.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import type { SchemaMistake, SchemaText } from './schema-merge.ts'

export interface SchemaFolder {
  readonly texts: readonly SchemaText[]
  readonly mistakes: readonly SchemaMistake[]
}

export function readSchemaFolder(folder: string): SchemaFolder {
  const texts: SchemaText[] = []
  const mistakes: SchemaMistake[] = []
  const report = (file: string, message: string): void => void mistakes.push({ file, place: file, message })
  const names = listed(folder, (message) => report(folder, message))
  for (const name of names.slice(0, limits.searchSchemaFiles.value)) {
    const file = join(folder, name)
    try {
      const { size } = statSync(file)
      if (size > limits.searchSchemaBytes.value)
        report(name, `has ${size} bytes; at most ${limits.searchSchemaBytes.value}`)
      else texts.push({ name, text: readFileSync(file, 'utf8') })
    } catch (error) {
      report(name, (error as Error).message)
    }
  }
  for (const name of names.slice(limits.searchSchemaFiles.value)) {
    report(name, `is ignored: at most ${limits.searchSchemaFiles.value} files`)
  }
  return { texts, mistakes }
}

function listed(folder: string, fail: (message: string) => void): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /\.graphqls?$/.test(name))
      .toSorted()
  } catch (error) {
    fail((error as Error).message)
    return []
  }
}
