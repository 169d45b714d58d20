/**
 * The shape of source files: opening comments, names, lengths. A function that makes a part (`createX`, `openX`) holds
 * that part's functions; it is measured without them, and each of them by itself. Comment lines do not count.
 */
import { isNode, isProduct, isTypeScript, type Node, type TreeFile, walk } from './tree.ts'

const functionLinesMax = 100
const fileLinesMax = 400

/** Tables of cases that are longer. Each may only shrink, and leaves this list when it fits. */
const knownLong: Readonly<Record<string, number>> = {}

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

export function longFiles(files: readonly TreeFile[], known = knownLong): string[] {
  return files.filter(isTypeScript).flatMap(({ path, text }) => {
    const lines = codeLines(text.trimEnd())
    const most = known[path] ?? fileLinesMax
    if (lines > most) return [`${path} has ${lines} lines, at most ${most}`]
    return most > fileLinesMax && lines <= fileLinesMax
      ? [`${path} fits: take it off the list of long files`]
      : []
  })
}

export function longFunctions(files: readonly TreeFile[]): string[] {
  return files.filter(isProduct).flatMap((one) => {
    const complaints: string[] = []
    walk(one, (node, ancestors) => {
      if (!isFunction(node)) return
      const name = nameOfFunction(node, ancestors)
      const lines = /^(create|open)[A-Z]/.test(name) ? ownLines(one, node) : linesOf(one, node)
      if (lines <= functionLinesMax) return
      complaints.push(`${one.path}: ${name} has ${lines} lines, at most ${functionLinesMax}`)
    })
    return complaints
  })
}

const isFunction = (node: Node): boolean =>
  /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)

const linesOf = (one: TreeFile, node: Node): number => codeLines(one.text.slice(node.start, node.end))

/** Lines of a text without those that hold nothing but a comment. */
const codeLines = (text: string): number =>
  text.split('\n').filter((line) => !/^\s*(\/\/|\/\*|\*( |\/|$))/.test(line)).length

/** Lines of a function without the functions directly inside it, each of which leaves one line. */
function ownLines(one: TreeFile, outer: Node): number {
  let lines = linesOf(one, outer)
  walk(one, (node, ancestors) => {
    const nearest = ancestors.findLast(isFunction)
    if (isFunction(node) && nearest === outer) lines -= linesOf(one, node) - 1
  })
  return lines
}

function nameOfFunction(node: Node, ancestors: readonly Node[]): string {
  const parent = ancestors.at(-1)
  const named = [node['id'], parent?.['id'], parent?.['key']].find(isNode)
  return typeof named?.['name'] === 'string' ? named['name'] : 'a function'
}
