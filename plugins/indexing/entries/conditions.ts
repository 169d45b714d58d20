/**
 * Translates terms of q into SQL over the narrow tables: a condition on `node.n`, and for comparisons also a
 * statement that finds nodes by value. Some terms have no SQL form (times, keys within values, long texts,
 * negated values) and are left to the predicate. Each condition says whether it is exact.
 */
import { limits } from '#base/limits/limits.ts'
import { canonicalOf } from '#ngsi-ld/context/core-context.ts'
import {
  type Interval,
  intervalsOf,
  type QueryComparison,
  type QueryTerm,
  type QueryTree,
  textMembers,
  timeMembers,
} from '#ngsi-ld/query/query.ts'
import { type Way, waysOf } from './paths.ts'

export interface IndexSql {
  readonly text: string
  readonly parameters: readonly unknown[]
}

export interface IndexCondition extends IndexSql {
  /** False if the predicate must check the candidates too. */
  readonly isExact: boolean
  /** Finds all nodes that may match; only for comparisons with values. */
  readonly drive?: IndexSql
}

/** Numbers of names and ids; undefined if the index has none. */
export interface NodeNumbers {
  nameOf(name: string): number | undefined
  nodeOf(id: string): number | undefined
  /** Whether any attribute with this name has values. Pure relationships need no lookup in `scalar`. */
  isValued(name: number): boolean
}

const never: IndexSql = { text: '0', parameters: [] }

/** The terms of a tree that must all hold. */
export const conjunctsOf = (tree: QueryTree): readonly QueryTree[] =>
  tree.kind === 'and' ? tree.parts : [tree]

/** The tree as a condition; undefined if it has no SQL form. */
export function conditionOf(tree: QueryTree, numbers: NodeNumbers): IndexCondition | undefined {
  if (tree.kind !== 'and' && tree.kind !== 'or') return termCondition(tree, numbers)
  const parts: IndexCondition[] = []
  for (const part of tree.parts) {
    const condition = conditionOf(part, numbers)
    if (condition === undefined) return undefined
    parts.push(condition)
  }
  const drives = parts.flatMap(({ drive }) => drive ?? [])
  const canDrive = tree.kind === 'or' && drives.length === parts.length
  return {
    text: `(${parts.map(({ text }) => text).join(tree.kind === 'and' ? ' AND ' : ' OR ')})`,
    parameters: parts.flatMap(({ parameters }) => parameters),
    isExact: parts.every(({ isExact }) => isExact),
    ...(canDrive && { drive: union(drives) }),
  }
}

const union = (all: readonly IndexSql[]): IndexSql =>
  all.length === 0
    ? { text: 'SELECT NULL WHERE 0', parameters: [] }
    : {
        text: all.map(({ text }) => text).join(' UNION '),
        parameters: all.flatMap(({ parameters }) => parameters),
      }

/** Tests for the end of a path: one for a scalar `s`, one for the target of a link `l`. */
interface Leaf {
  readonly scalar: IndexSql | undefined
  readonly link: IndexSql | undefined
  readonly isExact: boolean
}

function termCondition(term: QueryTerm, numbers: NodeNumbers): IndexCondition | undefined {
  const { path } = term
  if (path.member !== undefined || path.linked !== undefined) return undefined
  if (path.names.length > limits.indexPathNames.value || path.names.some(isBeside)) return undefined
  const leaf = leafOf(term, numbers)
  if (leaf === undefined) return undefined
  const ways = waysOf(path).flatMap((way) => numbersOf(way, numbers))
  const ends = ways.flatMap((way) => endsOf(way, leaf, numbers))
  const any = ends.length === 0 ? never : joined(ends.map(existing), ' OR ')
  if (term.kind === 'absent') return { ...any, text: `NOT ${any.text}`, isExact: true }
  if (term.kind !== 'compare') return { ...any, isExact: true }
  return { ...any, isExact: leaf.isExact, drive: union(ends.map(driving)) }
}

/** An end of a path interpretation: a table, and the test for its rows. */
interface End {
  readonly way: readonly number[]
  readonly last: 'scalar' | 'link'
  readonly test: IndexSql
}

function endsOf(way: readonly number[], { scalar, link }: Leaf, { isValued }: NodeNumbers): readonly End[] {
  return [
    ...(scalar === undefined || !isValued(way.at(-1)!)
      ? []
      : [{ way, last: 'scalar' as const, test: scalar }]),
    ...(link === undefined ? [] : [{ way, last: 'link' as const, test: link }]),
  ]
}

/** Members beside the value (times, language and so on), which the tables do not store. */
const isBeside = (name: string): boolean => timeMembers.has(name) || textMembers.has(name)

/** A path interpretation as name numbers; none if the index does not know one of its names. */
function numbersOf(way: Way, { nameOf }: NodeNumbers): (readonly number[])[] {
  const found = way.map((names) => nameOf(names.join(' ')))
  return found.includes(undefined) ? [] : [found as number[]]
}

const joined = (all: readonly IndexSql[], by: string): IndexSql => ({
  text: `(${all.map(({ text }) => text).join(by)})`,
  parameters: all.flatMap(({ parameters }) => parameters),
})

/** Searches from the node to the value. */
function existing({ way, last, test }: End): IndexSql {
  const alias = last === 'scalar' ? 's' : 'l'
  const hops = way.slice(0, -1)
  const tables = [...hops.map((_, i) => `link h${i}`), `${last} ${alias}`]
  const at = (i: number): string => (i === 0 ? 'node.n' : `h${i - 1}.target`)
  const steps = [...hops.map((_, i) => `h${i}.n = ${at(i)} AND h${i}.k = ?`)]
  const end = `${alias}.n = ${at(hops.length)} AND ${alias}.k = ?`
  return {
    text: `EXISTS (SELECT 1 FROM ${tables.join(' CROSS JOIN ')} WHERE ${[...steps, end, test.text].join(' AND ')})`,
    parameters: [...way, ...test.parameters],
  }
}

/** Searches from the value to the nodes. */
function driving({ way, last, test }: End): IndexSql {
  const alias = last === 'scalar' ? 's' : 'l'
  const hops = way.slice(0, -1)
  const backwards = hops.map((_, i) => hops.length - 1 - i)
  const tables = [`${last} ${alias}`, ...backwards.map((i) => `link h${i}`)]
  const from = (i: number): string => (i === hops.length - 1 ? `${alias}.n` : `h${i + 1}.n`)
  const steps = backwards.map((i) => `h${i}.target = ${from(i)} AND h${i}.k = ?`)
  const found = hops.length === 0 ? `${alias}.n` : 'h0.n'
  return {
    text: `SELECT ${found} FROM ${tables.join(' CROSS JOIN ')} WHERE ${[`${alias}.k = ?`, test.text, ...steps].join(' AND ')}`,
    parameters: [way.at(-1)!, ...test.parameters, ...backwards.map((i) => way[i]!)],
  }
}

const anything: IndexSql = { text: '1', parameters: [] }

function leafOf(term: QueryTerm, numbers: NodeNumbers): Leaf | undefined {
  if (term.kind === 'exists' || term.kind === 'absent')
    return { scalar: anything, link: anything, isExact: true }
  if (term.kind !== 'compare' || term.operator === '!=') return undefined
  const texts = intervalsOf(term)
  const names = term.operator === '==' ? texts.flatMap(namesOf) : []
  const intervals = [...texts, ...names]
  const tests = intervals.map(intervalTest)
  if (tests.includes(undefined)) return undefined
  return {
    scalar: joined(tests as IndexSql[], ' OR '),
    link: term.operator === '==' ? linkTest(term, numbers) : undefined,
    // VocabProperty values are stored as names but also equal IRIs (4.9).
    isExact: term.operator !== '==' || texts.every(({ type }) => type !== 'string'),
  }
}

/** An IRI may be stored as a name; returns the interval for that name. */
function namesOf(interval: Interval): readonly Interval[] {
  const { type, low, high } = interval
  if (type !== 'string' || typeof low !== 'string' || low !== high) return []
  const name = canonicalOf(low)
  return name === low ? [] : [{ type, low: name, high: name }]
}

/** Relationships are compared with single ids only. */
function linkTest(term: QueryComparison, { nodeOf }: NodeNumbers): IndexSql | undefined {
  const ids = intervalsOf(term).flatMap(({ type, low, high }) =>
    type === 'string' && low === high ? (nodeOf(low as string) ?? []) : [],
  )
  if (ids.length === 0) return undefined
  return { text: `l.target IN (${ids.map(() => '?').join()})`, parameters: ids }
}

/** SQLite sorts numbers before texts and texts before blobs, which bounds each type. */
function intervalTest({ type, low, high, lowOpen, highOpen }: Interval): IndexSql | undefined {
  if (type === 'boolean') return { text: 's.value = ?', parameters: [Buffer.from([low === true ? 1 : 0])] }
  if (type !== 'number' && type !== 'string') return undefined
  for (const bound of [low, high])
    if (typeof bound === 'string' && bound.length >= limits.indexTextCharacters.value) return undefined
  if (low !== undefined && low === high) return { text: 's.value = ?', parameters: [low] }
  const parts: IndexSql[] = []
  if (low !== undefined) parts.push({ text: `s.value ${lowOpen === true ? '>' : '>='} ?`, parameters: [low] })
  else if (type === 'string') parts.push({ text: "s.value >= ''", parameters: [] })
  if (high !== undefined)
    parts.push({ text: `s.value ${highOpen === true ? '<' : '<='} ?`, parameters: [high] })
  else parts.push({ text: type === 'number' ? "s.value < ''" : "s.value < x''", parameters: [] })
  return joined(parts, ' AND ')
}
