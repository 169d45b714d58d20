/**
 * An index of subscriptions by their selectors. It finds candidates for a change of an entity by its id,
 * types and changed attributes. Each subscription is filed under keys:
 *
 * 1. the ids of its selectors;
 * 2. else the literal prefix or suffix of its idPattern;
 * 3. else its types, each with the watched attributes.
 *
 * A subscription without a key is a candidate for every change. If q requires a value, candidates are
 * selected by it. Results are cached until the set of subscriptions changes, in bounded memory. Entities of
 * the same types share a result unless a subscription selects by id.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { canonicalOf } from '#ngsi-ld/context/core-context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { compileSelector, type EntitySelector, type TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { isSystemTime, type QueryTree, type QueryValue } from '#ngsi-ld/query/query.ts'
import { valuesAt } from '#ngsi-ld/query/query-match.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import type { PatternBudget } from '#ngsi-ld/values/pattern.ts'
import { literalsOf } from '#ngsi-ld/values/pattern-source.ts'

/** The object that belongs to a subscription. */
interface Holder {
  readonly subscription: Pick<Subscription, 'entities' | 'watchedAttributes' | 'q'>
}

/** An indexed subscription, with its selectors as tests. */
interface Entry<T> {
  readonly holder: T
  readonly keys: readonly string[] | undefined
  readonly equality: Equality | undefined
  /** Whether a selector has ids or an idPattern. */
  readonly selectsById: boolean
  accepts(id: string, types: readonly string[]): boolean
  watches(names: readonly string[]): boolean
}

/**
 * Subscriptions of one key. If q requires one of some values of an attribute, it is filed by attribute and
 * value.
 */
interface Bucket<T> {
  readonly plain: Set<Entry<T>>
  readonly valued: Map<string, Map<string, Set<Entry<T>>>>
}

/**
 * Candidates for a change: `plain` ones for certain, `valued` ones only if the entity has a value they
 * require.
 */
export interface MatchCandidates<T> {
  readonly plain: readonly T[]
  readonly valued: readonly Bucket<T>['valued'][]
}

/** Keys made of parts of an id: only lengths in use need to be tried. */
interface Lengths {
  readonly cut: (id: string, length: number) => string
  readonly counts: Map<number, number>
}

/** @param budget bounds the work of all idPatterns for one change. */
export function createSubscriptionIndex<T extends Holder>(budget?: PatternBudget) {
  const entries = new Map<T, Entry<T>>()
  const buckets = new Map<string, Bucket<T>>()
  /** Subscriptions without a key. */
  const broad = newBucket<T>()
  const parts: Readonly<Record<string, Lengths>> = {
    [beginning]: { cut: (id, length) => id.slice(0, length), counts: new Map() },
    [end]: { cut: (id, length) => id.slice(-length), counts: new Map() },
  }
  const cache = new Map<string, MatchCandidates<T>>()
  /** Number of subscriptions that select by id. */
  let selectingById = 0
  /** Total number of cached candidates. */
  let size = 0
  let evaluated = 0
  let version = 0

  function changed(): void {
    version++
    cache.clear()
    size = 0
  }

  function count(key: string, by: 1 | -1): void {
    const counts = parts[key[0]!]?.counts
    if (counts === undefined) return
    const length = key.length - 2
    const now = (counts.get(length) ?? 0) + by
    if (now === 0) counts.delete(length)
    else counts.set(length, now)
  }

  function find(id: string, types: readonly string[], names: readonly string[]): MatchCandidates<T> {
    const found = new Set<Entry<T>>(broad.plain)
    const valued = broad.valued.size > 0 ? [broad.valued] : []
    const take = (key: string): void => {
      const bucket = buckets.get(key)
      if (bucket === undefined) return
      for (const entry of bucket.plain) found.add(entry)
      if (bucket.valued.size > 0) valued.push(bucket.valued)
    }
    take(idKey(id))
    for (const [kind, { cut, counts }] of Object.entries(parts))
      for (const length of counts.keys()) if (length <= id.length) take(`${kind} ${cut(id, length)}`)
    for (const type of types) take(typeKey(type))
    for (const name of names) {
      take(nameKey(name))
      for (const type of types) take(typeKey(type, name))
    }
    return { plain: chosen({ found, id, types, names }), valued }
  }

  function chosen({ found, id, types, names }: Candidates<T>): T[] {
    evaluated += found.size
    return [...found]
      .filter((entry) => entry.accepts(id, types) && entry.watches(names))
      .map(({ holder }) => holder)
  }

  return Object.freeze({
    add(holder: T): void {
      const entry = entryOf(holder, budget)
      entries.set(holder, entry)
      if (entry.selectsById) selectingById++
      if (entry.keys === undefined) put(broad, entry)
      for (const key of entry.keys ?? []) {
        const bucket = buckets.get(key) ?? newBucket<T>()
        buckets.set(key, bucket)
        put(bucket, entry)
        count(key, 1)
      }
      changed()
    },
    remove(holder: T): void {
      const entry = entries.get(holder)
      if (entry === undefined) return
      entries.delete(holder)
      if (entry.selectsById) selectingById--
      if (entry.keys === undefined) take(broad, entry)
      for (const key of entry.keys ?? []) {
        const bucket = buckets.get(key)!
        take(bucket, entry)
        if (bucket.plain.size + bucket.valued.size === 0) buckets.delete(key)
        count(key, -1)
      }
      changed()
    },
    /** Subscriptions whose selectors match this entity and that watch one of these attributes. */
    find(id: string, types: readonly string[], names: readonly string[]): MatchCandidates<T> {
      const key = `${selectingById > 0 ? id : ''} ${types.join(' ')}|${names.join(' ')}`
      const known = cache.get(key)
      if (known !== undefined) return known
      const found = find(id, types, names)
      const weight = found.plain.length + found.valued.length + 1
      if (size + weight > limits.candidatesRememberedMax.value) {
        cache.clear()
        size = 0
      }
      size += weight
      cache.set(key, found)
      return found
    },
    /** Those of the valued candidates whose required value the entity has. */
    valued({ valued }: MatchCandidates<T>, entity: Entity, names: readonly string[]): readonly T[] {
      const found = new Set<Entry<T>>()
      for (const byAttribute of valued) {
        for (const [attribute, byValue] of byAttribute) {
          for (const value of valuesAt({ names: [attribute] }, entity))
            for (const entry of byValue.get(valueKey(value)) ?? []) found.add(entry)
        }
      }
      return chosen({ found, id: entity.id, types: listOf(entity.type), names })
    },
    /** Changes whenever a subscription is added or removed. */
    version: () => version,
    /** Number of subscriptions evaluated one by one so far, without those that the keys excluded. */
    evaluated: () => evaluated,
  })
}

/** Entries that may match a change of these attributes. */
interface Candidates<T> {
  readonly found: ReadonlySet<Entry<T>>
  readonly id: string
  readonly types: readonly string[]
  readonly names: readonly string[]
}

const newBucket = <T>(): Bucket<T> => ({ plain: new Set(), valued: new Map() })

function put<T>({ plain, valued }: Bucket<T>, entry: Entry<T>): void {
  if (entry.equality === undefined) return void plain.add(entry)
  const { attribute, values } = entry.equality
  const byValue = valued.get(attribute) ?? new Map<string, Set<Entry<T>>>()
  valued.set(attribute, byValue)
  for (const value of values) byValue.set(value, (byValue.get(value) ?? new Set()).add(entry))
}

function take<T>({ plain, valued }: Bucket<T>, entry: Entry<T>): void {
  if (entry.equality === undefined) return void plain.delete(entry)
  const { attribute, values } = entry.equality
  const byValue = valued.get(attribute)
  for (const value of values) {
    const entries = byValue?.get(value)
    entries?.delete(entry)
    if (entries?.size === 0) byValue?.delete(value)
  }
  if (byValue?.size === 0) valued.delete(attribute)
}

/** A q that holds only if an attribute has one of these values. */
interface Equality {
  readonly attribute: string
  readonly values: readonly string[]
}

/** The first required term of q that compares an attribute itself with values. */
function equalityOf(q: QueryTree | undefined): Equality | undefined {
  if (q?.kind === 'and') return q.parts.map(equalityOf).find((found) => found !== undefined)
  if (q?.kind !== 'compare' || q.operator !== '==' || isSystemTime(q.path)) return undefined
  const { names, member, linked } = q.path
  const [attribute] = names
  if (attribute === undefined || names.length > 1 || member !== undefined || linked !== undefined)
    return undefined
  const scalars = q.value.kind === 'list' ? q.value.items : [q.value]
  const values = scalars.map(literalKey)
  return values.includes(undefined) ? undefined : { attribute, values: values as string[] }
}

/** Times and vocabulary names have other equalities than that of their text. */
function literalKey(scalar: QueryValue): string | undefined {
  switch (scalar.kind) {
    case 'number':
    case 'boolean':
      return valueKey(scalar.value)
    case 'string':
    case 'name':
      return canonicalOf(scalar.value) === scalar.value ? valueKey(scalar.value) : undefined
    default:
      return undefined
  }
}

/** A value that is not a scalar equals no literal. */
function valueKey(value: Json): string {
  if (typeof value === 'string') return `string ${value.toWellFormed()}`
  return typeof value === 'number' || typeof value === 'boolean' ? `${typeof value} ${value}` : 'none'
}

function entryOf<T extends Holder>(holder: T, budget: PatternBudget | undefined): Entry<T> {
  const { entities = [], watchedAttributes: watched, q } = holder.subscription
  const tests = entities.map((one) => compileSelector(one, budget))
  const names = watched === undefined ? undefined : new Set(watched)
  return {
    holder,
    keys: keysOf(entities, watched),
    equality: equalityOf(q),
    selectsById: entities.some(({ ids, idPattern }) => ids !== undefined || idPattern !== undefined),
    accepts: (id, types) => tests.length === 0 || tests.some((test) => test(id, types)),
    watches: (changed) => names === undefined || changed.some((name) => names.has(name)),
  }
}

/**
 * The keys of a subscription: for each selector its ids, else a literal part of its pattern, else its types,
 * each with the watched attributes. Undefined if a selector has none of these and nothing is watched.
 */
function keysOf(
  entities: readonly EntitySelector[],
  watched: readonly string[] | undefined,
): readonly string[] | undefined {
  if (entities.length === 0) return watched?.map(nameKey)
  const keys = entities.map(({ ids, idPattern, types }) => {
    if (ids !== undefined) return ids.map(idKey)
    const part = idPattern === undefined ? undefined : patternKey(idPattern)
    if (part !== undefined) return [part]
    const names = namesCovering(types)
    return names === undefined
      ? watched?.map(nameKey)
      : names.flatMap((type) => watched?.map((name) => typeKey(type, name)) ?? [typeKey(type)])
  })
  return keys.includes(undefined) ? undefined : [...new Set(keys.flatMap((list) => list!))]
}

/** The key of the longer literal end of a pattern. */
function patternKey(source: string): string | undefined {
  const { prefix, suffix } = literalsOf(source)
  if (prefix === '' && suffix === '') return undefined
  return prefix.length >= suffix.length ? `${beginning} ${prefix}` : `${end} ${suffix}`
}

/**
 * Type names of which every match has at least one. Undefined if no such list exists. For types that must all
 * be present, the shortest list is enough.
 */
function namesCovering(selection: TypeSelection | undefined): readonly string[] | undefined {
  switch (selection?.kind) {
    case 'type':
      return [selection.name]
    case 'and': {
      const lists = selection.parts.map(namesCovering).filter((list) => list !== undefined)
      return lists.toSorted((a, b) => a.length - b.length)[0]
    }
    case 'or': {
      const lists = selection.parts.map(namesCovering)
      return lists.includes(undefined) ? undefined : lists.flatMap((list) => list!)
    }
    default:
      return undefined
  }
}

const [beginning, end] = ['b', 'e'] as const
const idKey = (id: string): string => `i ${id}`
const nameKey = (name: string): string => `n ${name}`
const typeKey = (type: string, name?: string): string =>
  name === undefined ? `t ${type}` : `t ${type} ${name}`
