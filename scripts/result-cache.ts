/**
 * Keeps results of an evaluation in files, so that an interrupted or repeated run does not compute them
 * again. The name of a file is a hash of the input and of the code that computes the result: after a
 * change of either, the result is computed anew.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'

export interface ResultCache {
  /** The cached result of this input, or the one that `compute` gives. */
  readonly resultOf: <Result>(input: readonly unknown[], compute: () => Promise<Result>) => Promise<Result>
}

/**
 * @param folder where the files are; undefined for no cache
 * @param code folders and files of the repository whose code decides the results
 */
export function openResultCache(folder: string | undefined, code: readonly string[]): ResultCache {
  if (folder === undefined) return { resultOf: (_, compute) => compute() }
  mkdirSync(folder, { recursive: true })
  const root = join(import.meta.dirname, '..')
  const codeHash = createHash('sha256')
  for (const path of code.flatMap((one) => codeFiles(join(root, one)))) codeHash.update(readFileSync(path))
  const version = codeHash.digest()
  return {
    async resultOf<Result>(input: readonly unknown[], compute: () => Promise<Result>) {
      const name = createHash('sha256').update(version).update(serialize(input)).digest('hex')
      const path = join(folder, name)
      const known = readIfExists(path)
      if (known !== undefined) return deserialize(known) as Result
      const result = await compute()
      const temporary = `${path}.${process.pid}.${Math.floor(performance.now() * 1000)}`
      writeFileSync(temporary, serialize(result))
      renameSync(temporary, path)
      return result
    },
  }
}

function codeFiles(path: string): string[] {
  if (path.endsWith('.ts')) return [path]
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .toSorted()
    .map((name) => join(path, name))
}

function readIfExists(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
