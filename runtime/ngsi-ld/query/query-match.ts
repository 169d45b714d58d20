/**
 * Evaluates a query on an entity [NGSI-LD 4.9]. A term holds if it holds for any instance of the attribute
 * and any item of an array; an absent target satisfies only `!attr`. Values of another type are unequal and
 * otherwise never match; relationships support only == and !=. Texts are ordered by code point, times are
 * compared to the millisecond. Terms on linked entities require a `follow` function and are rejected without
 * one; an entity that it does not find counts as absent.
 */
import type { Json } from '#contract/pipeline.ts'
import { toIri } from '#ngsi-ld/context/core-context.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { Stamps } from '#ngsi-ld/representation/representation.ts'
import { dateTimeToMs, isDate, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { notSupported } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { compilePattern, createQueryBudget, type PatternBudget } from '#ngsi-ld/values/pattern.ts'
import {
  hasLinked,
  type Interval,
  intervalsOf,
  isSystemTime,
  type QueryComparison,
  type QueryMatch,
  type QueryPath,
  type QueryTerm,
  type QueryTree,
  textMembers,
  timeMembers,
  timeToMs,
} from './query.ts'

/** createdAt and modifiedAt in milliseconds, stored beside the document; keyed `name` or `name datasetId`. */
export interface QueryTimes {
  readonly created: number
  readonly modified: number
  readonly attributes: Readonly<Record<string, Stamps>>
}

export type QueryPredicate = (entity: Entity, times?: QueryTimes) => boolean

/** An entity that is the target of a relationship. */
export interface FollowedEntity {
  entity(): Entity
  times(): QueryTimes
}

/** Finds the entity with an id; `types` are the types that the query or relationship states, if any. */
export type Follow = (id: string, types: readonly string[]) => FollowedEntity | undefined

/**
 * Compiles the query to a function.
 * @throws GatewayError ngsi-ld.not-supported for terms on linked entities without `follow`.
 */
export function compileQuery(tree: QueryTree, follow?: Follow, budget = createQueryBudget()): QueryPredicate {
  if (hasLinked(tree) && follow === undefined)
    throw notSupported('q: terms on linked entities, attr{...}, are not supported here')
  const test = compileTree(tree, follow, budget)
  return (entity, times) => {
    budget.begin()
    return test(entity, times)
  }
}

function compileTree(tree: QueryTree, follow: Follow | undefined, budget: PatternBudget): QueryPredicate {
  if (tree.kind === 'and' || tree.kind === 'or') {
    const parts = tree.parts.map((part) => compileTree(part, follow, budget))
    return tree.kind === 'and'
      ? (entity, times) => parts.every((part) => part(entity, times))
      : (entity, times) => parts.some((part) => part(entity, times))
  }
  const test = compileTerm(tree, budget)
  const { path } = tree
  const targets = (entity: Entity, times?: QueryTimes): readonly Target[] =>
    path.linked === undefined
      ? targetsOf(path, entity, times)
      : linkedTargets(path, path.linked, entity, { follow: follow!, times })
  if (tree.kind === 'absent') return (entity, times) => targets(entity, times).length === 0
  return (entity, times) => targets(entity, times).some(test)
}

/** The values at a path, with arrays split into items. */
export function valuesAt(path: QueryPath, entity: Entity, times?: QueryTimes): readonly Json[] {
  return targetsOf(path, entity, times).flatMap(({ items }) => items)
}

/** The values at a path, arrays and objects as they are; the texts of a LanguageProperty one by one. */
export function contentsAt(path: QueryPath, entity: Entity, times?: QueryTimes): readonly Json[] {
  return targetsOf(path, entity, times).flatMap(({ items, whole }) => (whole === undefined ? items : [whole]))
}

/** The target of a path in one attribute instance. */
interface Target {
  readonly items: readonly Json[]
  /** The complete value that the items were taken from, unless it is a set of texts. */
  readonly whole?: Json
  readonly isRelationship: boolean
  /** For a relationship: the types that it states for its targets. */
  readonly linkedTypes?: readonly string[]
  /** For a VocabProperty: its values are names, and equal to their IRIs (4.9). */
  readonly isVocab?: boolean
}

function compileTerm(term: QueryTerm, budget: PatternBudget): (target: Target) => boolean {
  if (term.kind === 'compare') return compileComparison(term)
  if (term.kind === 'match') return compileMatch(term, budget)
  return () => true
}

function compileComparison(term: QueryComparison): (target: Target) => boolean {
  const test = compileItemTest(term)
  const isEquality = term.operator === '==' || term.operator === '!='
  const fits = ({ items, isVocab }: Target): boolean =>
    (isEquality && isVocab === true ? items.map(iriOf) : items).some(test)
  if (term.operator === '==') return fits
  if (term.operator === '!=') return (target) => !fits(target)
  return (target) => !target.isRelationship && fits(target)
}

const iriOf = (item: Json): Json => (typeof item === 'string' ? toIri(item) : item)

function compileMatch(term: QueryMatch, budget: PatternBudget): (target: Target) => boolean {
  const fits = compileItemTest(term, budget)
  return ({ items, isRelationship }) => {
    if (isRelationship || !items.some((item) => typeof item === 'string')) return false
    return items.some(fits) !== term.negated
  }
}

/** Compiles a term to a test of one scalar, ignoring negation. */
export function compileItemTest(
  term: QueryComparison | QueryMatch,
  budget?: PatternBudget,
): (item: Json) => boolean {
  if (term.kind === 'match') {
    const pattern = compilePattern(term.pattern, 'q', budget)
    return (item) => typeof item === 'string' && pattern.test(item.toWellFormed())
  }
  const intervals = intervalsOf(term)
  return (item) => intervals.some((interval) => isWithin(interval, item))
}

// ---- Targets of paths

function targetsOf(path: QueryPath, entity: Entity, times: QueryTimes | undefined): readonly Target[] {
  const [name, ...below] = path.names as [string, ...string[]]
  if (isSystemTime(path)) return times === undefined ? [] : [timeTarget(name, times.created, times.modified)]
  const targets: Target[] = []
  for (const instance of instancesOf(entity, name)) {
    const known = times?.attributes[instance.datasetId === undefined ? name : `${name} ${instance.datasetId}`]
    for (const target of descend(instance, below, path, known)) targets.push(target)
  }
  return targets
}

/** Evaluates the rest of the path in the targets of a relationship that have one of the requested types. */
function linkedTargets(
  { names, member }: QueryPath,
  { types, path }: NonNullable<QueryPath['linked']>,
  entity: Entity,
  { follow, times }: { readonly follow: Follow; readonly times: QueryTimes | undefined },
): readonly Target[] {
  const links = targetsOf(member === undefined ? { names } : { names, member }, entity, times)
  const named = links.flatMap(({ items, linkedTypes }) =>
    linkedTypes === undefined ? [] : items.map((id) => [id, linkedTypes] as const),
  )
  return [...Map.groupBy(named, ([id]) => id)].flatMap(([id, all]) => {
    if (typeof id !== 'string') return []
    const found = follow(id, types.length > 0 ? types : [...new Set(all.flatMap(([, some]) => some))])
    const linked = found?.entity()
    if (found === undefined || linked === undefined) return []
    if (types.length > 0 && !types.some((type) => listOf(linked.type).includes(type))) return []
    return path.linked === undefined
      ? targetsOf(path, linked, found.times())
      : linkedTargets(path, path.linked, linked, { follow, times: found.times() })
  })
}

function descend(
  instance: AttributeInstance,
  below: readonly string[],
  path: QueryPath,
  times: Stamps | undefined,
): readonly Target[] {
  const [name, ...rest] = below
  if (name === undefined) return valueTarget(instance, path.member)
  if (timeMembers.has(name) || textMembers.has(name)) {
    if (rest.length > 0 || path.member !== undefined) return []
    if (name === 'createdAt' || name === 'modifiedAt')
      return times === undefined ? [] : [timeTarget(name, times[0], times[1])]
    const value = own(instance, name)
    return value === undefined ? [] : [{ items: listOf(value), isRelationship: false }]
  }
  const parts = listOf(own(instance, name) as AttributeInstance | undefined)
  return parts.filter(isInstance).flatMap((part) => descend(part, rest, path, undefined))
}

function timeTarget(name: string, created: number, modified: number): Target {
  return { items: [msToDateTime(name === 'createdAt' ? created : modified)], isRelationship: false }
}

function valueTarget(instance: AttributeInstance, member: readonly string[] | undefined): readonly Target[] {
  const value = memberOf(instance, member)
  if (value === undefined) return []
  const items = member === undefined ? comparedOf(instance) : itemsOf(value)
  const isRelationship = instance.type === 'Relationship' || instance.type === 'ListRelationship'
  const isVocab = instance.type === 'VocabProperty' && member === undefined
  const linkedTypes = listOf(own(instance, 'objectType') ?? []).filter((type) => typeof type === 'string')
  const isTexts = instance.type === 'LanguageProperty'
  return [
    {
      items,
      isRelationship: isRelationship && member === undefined,
      ...(isRelationship && member === undefined ? { linkedTypes } : {}),
      isVocab,
      ...(isTexts ? {} : { whole: value }),
    },
  ]
}

function memberOf(instance: AttributeInstance, member: readonly string[] | undefined): Json | undefined {
  let value = contentOf(instance)
  if (member === undefined) return value
  if (instance.type === 'LanguageProperty' && member.length === 1 && member[0] === '*') {
    return isObject(value) ? Object.values(value).flatMap((text) => listOf(text)) : undefined
  }
  for (const key of member) {
    const isContainer = isObject(value) || Array.isArray(value)
    value = isContainer ? own(value as { readonly [key: string]: Json }, key) : undefined
  }
  return value
}

function isInstance(part: unknown): part is AttributeInstance {
  return isObject(part)
}

/** The value of an instance of any kind; targets of a ListRelationship as plain URIs. */
export function contentOf(instance: AttributeInstance): Json | undefined {
  const content = own(instance, kindOf(instance).member)
  if (instance.type !== 'ListRelationship' || !Array.isArray(content)) return content
  return content.map((item: Json) => (isObject(item) ? (own(item, 'object') ?? item) : item))
}

/**
 * The values that comparisons use: the scalars of the value; for a LanguageProperty the texts of all
 * languages.
 */
export function comparedOf(instance: AttributeInstance): readonly Json[] {
  const content = contentOf(instance)
  if (content === undefined) return []
  if (instance.type === 'LanguageProperty' && isObject(content)) {
    return Object.values(content).flatMap((text) => listOf(text))
  }
  return itemsOf(content)
}

/** The scalars in a value, as comparisons use them: items of an array, contents of JSON-LD typed values. */
export function itemsOf(content: Json): readonly Json[] {
  return listOf(content).map(unwrap)
}

function unwrap(item: Json): Json {
  return isObject(item) ? (own(item, '@value') ?? item) : item
}

// ---- Comparing

function isWithin(interval: Interval, item: Json): boolean {
  const value = comparable(interval.type, item)
  if (value === undefined) return false
  const { low, high } = interval
  if (low === high) return value === low
  if (low !== undefined) {
    const order = compare(value, low)
    if (order < 0 || (order === 0 && interval.lowOpen === true)) return false
  }
  if (high === undefined) return true
  const order = compare(value, high)
  return order < 0 || (order === 0 && interval.highOpen !== true)
}

function comparable(type: Interval['type'], item: Json): number | string | boolean | undefined {
  if (type === 'number') return typeof item === 'number' ? item : undefined
  if (type === 'boolean') return typeof item === 'boolean' ? item : undefined
  if (typeof item !== 'string') return undefined
  if (type === 'dateTime') return dateTimeToMs(item)
  if (type === 'time') return timeToMs(item)
  if (type === 'date') return isDate(item) ? item : undefined
  return item.toWellFormed()
}

function compare<T extends number | string | boolean>(a: T, b: T): number {
  if (a === b) return 0
  return typeof a === 'string' ? compareText(a, b as string) : a < b ? -1 : 1
}

/**
 * Compares by code point, as SQLite compares UTF-8. UTF-16 units would order surrogates and U+E000 to U+FFFF
 * differently.
 */
function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    if (left === right) continue
    const leftIsPair = left >= 0xd800 && left < 0xe000
    const rightIsPair = right >= 0xd800 && right < 0xe000
    if (leftIsPair !== rightIsPair) return leftIsPair ? 1 : -1
    return left - right
  }
  return a.length - b.length
}
