/**
 * The shape of source files: opening comments, names, and the lengths of files without comments. Functions have no
 * limit on lines; `biome.json` limits their cognitive complexity.
 */
import { isTypeScript, type TreeFile } from './tree.ts'

const fileLinesMax = 500

const bannedWords = ['util', 'helper', 'common', 'misc', 'manager', 'service', 'handler', 'processor']

/** A file begins by saying what it is and what always holds. */
export function missingOpenings(files: readonly TreeFile[]): string[] {
  return files
    .filter((one) => isTypeScript(one) || /^(bin|\.ci)\/|\.sh$/.test(one.path))
    .filter((one) => !opensWithComment(one))
    .map(({ path }) => `${path} does not begin with a comment that says what it is`)
}

function opensWithComment({ path, text }: TreeFile): boolean {
  if (path.endsWith('.ts')) return /^(#!.*\n)?\/\*\*\s+(\*\s+)?[^\s*]/.test(text)
  return /^#!.*\n# \S/.test(text)
}

export function bannedNames(files: readonly TreeFile[]): string[] {
  return files.filter(isTypeScript).flatMap(({ path }) => {
    const name = path.split('/').at(-1)!
    const word = bannedWords.find((banned) => new RegExp(`(^|[-.])${banned}s?([-.]|$)`).test(name))
    if (word !== undefined) return [`${path}: "${word}" names no idea; find the noun`]
    return /^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.config)?\.ts$/.test(name)
      ? []
      : [`${path}: not a kebab-case noun`]
  })
}

/** Test files lie where a project of vitest.config.ts looks for them. */
export function unfoundTests(files: readonly TreeFile[]): string[] {
  return files
    .filter(({ path }) => /\.(test|spec)\.[a-z]+$/.test(path))
    .filter(
      ({ path }) =>
        !/^(runtime|firmware-bridges|plugins|test\/(spec|property|tidy|kit|smoke|crash|judge|interop|power-cut))\/.*\.test\.ts$/.test(
          path,
        ),
    )
    .map(({ path }) => `${path}: no test project runs it`)
}

export function longFiles(files: readonly TreeFile[]): string[] {
  return files.filter(isTypeScript).flatMap(({ path, text }) => {
    const lines = codeLines(text.trimEnd())
    return lines > fileLinesMax ? [`${path} has ${lines} lines, at most ${fileLinesMax}`] : []
  })
}

/** Lines of a text without those that hold nothing but a comment. */
const codeLines = (text: string): number =>
  text.split('\n').filter((line) => !/^\s*(\/\/|\/\*|\*( |\/|$))/.test(line)).length
