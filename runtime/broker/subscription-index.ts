/**
 * Subscriptions by what they select: which ones may care about an entity of these types and these attributes of it?
 * Each stands on shelves named by its ids, by the literal beginning or end of its idPattern, or by its types, each
 * with the attributes it watches; what no name can find is looked at every time. Answers are remembered until the set
 * of subscriptions changes, in bounded memory.
 */
import { limits } from '#base/limits.ts'
import { compilePattern } from '#ngsi-ld/pattern.ts'
import { compileSelector, type EntitySelector, type TypeSelection } from '#ngsi-ld/selection.ts'
import type { Subscription } from '#ngsi-ld/subscription.ts'

/** Whatever is kept for a subscription. */
interface Holder {
  readonly subscription: Pick<Subscription, 'entities' | 'watchedAttributes'>
}

/** One that stands in the index, with its selectors as tests. */
interface Entry<T> {
  readonly holder: T
  readonly shelves: readonly string[] | undefined
  takes(id: string, types: readonly string[]): boolean
  watches(names: readonly string[]): boolean
}

/** Names of shelves by parts of an id: only lengths that some shelf has need to be tried. */
interface Lengths {
  readonly cut: (id: string, length: number) => string
  readonly counts: Map<number, number>
}

export function createSubscriptionIndex<T extends Holder>() {
  const entries = new Map<T, Entry<T>>()
  const shelves = new Map<string, Set<Entry<T>>>()
  /** Subscriptions that no name can find. */
  const broad = new Set<Entry<T>>()
  const parts: Readonly<Record<string, Lengths>> = {
    [beginning]: { cut: (id, length) => id.slice(0, length), counts: new Map() },
    [end]: { cut: (id, length) => id.slice(-length), counts: new Map() },
  }
  const remembered = new Map<string, readonly T[]>()
  /** Subscriptions in all that is remembered. */
  let size = 0
  let looked = 0
  let version = 0

  function changed(): void {
    version++
    remembered.clear()
    size = 0
  }

  function count(shelf: string, by: 1 | -1): void {
    const counts = parts[shelf[0]!]?.counts
    if (counts === undefined) return
    const length = shelf.length - 2
    const now = (counts.get(length) ?? 0) + by
    if (now === 0) counts.delete(length)
    else counts.set(length, now)
  }

  function find(id: string, types: readonly string[], names: readonly string[]): T[] {
    const found = new Set<Entry<T>>(broad)
    const take = (key: string): void => {
      for (const entry of shelves.get(key) ?? []) found.add(entry)
    }
    take(idShelf(id))
    for (const [kind, { cut, counts }] of Object.entries(parts))
      for (const length of counts.keys()) if (length <= id.length) take(`${kind} ${cut(id, length)}`)
    for (const type of types) take(typeShelf(type))
    for (const name of names) {
      take(nameShelf(name))
      for (const type of types) take(typeShelf(type, name))
    }
    looked += found.size
    return [...found]
      .filter((entry) => entry.takes(id, types) && entry.watches(names))
      .map(({ holder }) => holder)
  }

  return Object.freeze({
    add(holder: T): void {
      const entry = entryOf(holder)
      entries.set(holder, entry)
      if (entry.shelves === undefined) broad.add(entry)
      for (const key of entry.shelves ?? []) {
        const shelf = shelves.get(key)
        if (shelf === undefined) shelves.set(key, new Set([entry]))
        else shelf.add(entry)
        count(key, 1)
      }
      changed()
    },
    remove(holder: T): void {
      const entry = entries.get(holder)
      if (entry === undefined) return
      entries.delete(holder)
      broad.delete(entry)
      for (const key of entry.shelves ?? []) {
        const shelf = shelves.get(key)!
        shelf.delete(entry)
        if (shelf.size === 0) shelves.delete(key)
        count(key, -1)
      }
      changed()
    },
    /** Those whose selectors take this entity and that watch one of these attributes. */
    candidates(id: string, types: readonly string[], names: readonly string[]): readonly T[] {
      const key = `${id} ${types.join(' ')}|${names.join(' ')}`
      const known = remembered.get(key)
      if (known !== undefined) return known
      const found = find(id, types, names)
      if (size + found.length + 1 > limits.candidatesRememberedMax.value) {
        remembered.clear()
        size = 0
      }
      size += found.length + 1
      remembered.set(key, found)
      return found
    },
    /** Changes whenever a subscription comes or goes. */
    version: () => version,
    /** Subscriptions looked at one by one so far; what the shelves leave out is not among them. */
    looked: () => looked,
  })
}

function entryOf<T extends Holder>(holder: T): Entry<T> {
  const { entities = [], watchedAttributes: watched } = holder.subscription
  const tests = entities.map(compileSelector)
  const names = watched === undefined ? undefined : new Set(watched)
  return {
    holder,
    shelves: shelvesOf(entities, watched),
    takes: (id, types) => tests.length === 0 || tests.some((test) => test(id, types)),
    watches: (changed) => names === undefined || changed.some((name) => names.has(name)),
  }
}

/**
 * The shelves on which a subscription stands: for each selector its ids, else a literal part of its pattern, else its
 * types, each with the attributes that are watched. Undefined when a selector has none and nothing is watched.
 */
function shelvesOf(
  entities: readonly EntitySelector[],
  watched: readonly string[] | undefined,
): readonly string[] | undefined {
  if (entities.length === 0) return watched?.map(nameShelf)
  const shelves = entities.map(({ ids, idPattern, types }) => {
    if (ids !== undefined) return ids.map(idShelf)
    const part = idPattern === undefined ? undefined : patternShelf(idPattern)
    if (part !== undefined) return [part]
    const names = namesCovering(types)
    return names === undefined
      ? watched?.map(nameShelf)
      : names.flatMap((type) => watched?.map((name) => typeShelf(type, name)) ?? [typeShelf(type)])
  })
  return shelves.includes(undefined) ? undefined : [...new Set(shelves.flatMap((list) => list!))]
}

/** By the longer of the literal ends of a pattern. */
function patternShelf(source: string): string | undefined {
  const { prefix, suffix } = compilePattern(source)
  if (prefix === '' && suffix === '') return undefined
  return prefix.length >= suffix.length ? `${beginning} ${prefix}` : `${end} ${suffix}`
}

/**
 * Where a selection of types can be found: under each of these names. Undefined when no list of names covers it. Of
 * types that must come together, the shortest list will do.
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
const idShelf = (id: string): string => `i ${id}`
const nameShelf = (name: string): string => `n ${name}`
const typeShelf = (type: string, name?: string): string =>
  name === undefined ? `t ${type}` : `t ${type} ${name}`
