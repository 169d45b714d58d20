/**
 * The repository as the tidy tests see it: every text file with its path, and every TypeScript file parsed once.
 * Checks are plain functions from files to a list of complaints, so that each can be shown to fail on a file
 * made up for that purpose.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'vitest/node'

export interface TreeFile {
  /** Path from the repository's top, with forward slashes. */
  readonly path: string
  readonly text: string
  readonly bytes: number
}

/** A node of the syntax tree, with only what the checks look at. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [property: string]: unknown
}

const top = join(import.meta.dirname, '..', '..')
const notOurs = new Set(['node_modules', 'dist', 'coverage', '.git', '.selvedge', 'package-lock.json'])

let cached: readonly TreeFile[] | undefined

/** Every file that is ours, read once per test process. */
export function wholeTree(): readonly TreeFile[] {
  cached ??= pathsUnder('').map((path) => {
    const content = readFileSync(join(top, path))
    return { path, text: content.toString('utf8'), bytes: content.length }
  })
  return cached
}

function pathsUnder(folder: string): string[] {
  return readdirSync(join(top, folder))
    .filter((name) => !notOurs.has(name) && !name.endsWith('.log'))
    .map((name) => (folder === '' ? name : `${folder}/${name}`))
    .flatMap((path) => (statSync(join(top, path)).isDirectory() ? pathsUnder(path) : [path]))
}

/** A made-up file, for showing that a check can fail. */
export const file = (path: string, text: string): TreeFile => ({ path, text, bytes: text.length })

export const isTypeScript = ({ path }: TreeFile): boolean => path.endsWith('.ts')
export const isTest = ({ path }: TreeFile): boolean => path.endsWith('.test.ts') || path.startsWith('test/')

/** What is shipped: the rooms and the bridges, without their tests. */
export const isProduct = (one: TreeFile): boolean =>
  isTypeScript(one) && !isTest(one) && /^(runtime|firmware-bridges|plugins)\//.test(one.path)

const parsed = new WeakMap<TreeFile, Node>()

/** Syntax tree of a TypeScript file. */
export function programOf(one: TreeFile): Node {
  let program = parsed.get(one)
  if (program === undefined) {
    program = parseAst(one.text, { lang: 'ts' }) as unknown as Node
    parsed.set(one, program)
  }
  return program
}

/** Every node of a file, parents before children, with its ancestors (nearest last; valid during the call). */
export function walk(one: TreeFile, visit: (node: Node, ancestors: readonly Node[]) => void): void {
  const ancestors: Node[] = []
  const enter = (value: unknown): void => {
    if (Array.isArray(value)) {
      for (const item of value) enter(item)
    } else if (isNode(value)) {
      visit(value, ancestors)
      ancestors.push(value)
      for (const child of Object.values(value)) enter(child)
      ancestors.pop()
    }
  }
  enter(programOf(one))
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

const lineEnds = new WeakMap<TreeFile, readonly number[]>()

/** Line of a position, counted from one. */
export function lineAt(one: TreeFile, position: number): number {
  let ends = lineEnds.get(one)
  if (ends === undefined) {
    ends = [...one.text.matchAll(/\n/g)].map(({ index }) => index)
    lineEnds.set(one, ends)
  }
  return ends.filter((end) => end < position).length + 1
}
