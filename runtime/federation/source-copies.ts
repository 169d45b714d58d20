/**
 * The last answers of sources that allow caching, in memory up to a limit of bytes with LRU eviction, and on
 * disk through the broker. A copy replaces its source as long as the registration allows, and afterwards
 * while the source is unreachable. After a restart only the latter applies.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { SourceCopies } from '#broker/sources/source-requests.ts'
import type { Json } from '#contract'
import { addDuration, parseDuration } from '#ngsi-ld/values/duration.ts'
import { isObject, listOf } from '#ngsi-ld/values/json.ts'

/** The cached parts of an answer. */
export interface KeptAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly text: string
  /** Key of the context of its names. */
  readonly contextKey: string
}

interface Copy {
  readonly answer: KeptAnswer
  readonly at: number
  readonly bytes: number
  readonly store: SourceCopies
  /** The source was written to since, or the gateway was restarted. */
  isStale: boolean
  /** The source was written to since, or it answered 404. */
  isOutdated: boolean
}

const keptHeaders = ['content-type', 'content-range', 'link', 'ngsild-results-count']

/** Keys begin with the key of the source. */
export function createSourceCopies({ clock }: { clock: Clock }) {
  /** Least recently used first. */
  const copies = new Map<string, Copy>()
  const loaded = new WeakSet<SourceCopies>()
  let bytesKept = 0

  function drop(key: string): void {
    const known = copies.get(key)
    if (known === undefined) return
    copies.delete(key)
    bytesKept -= known.bytes
    known.store.drop(key)
  }
  /** Stores a copy; false if it is too large. */
  function put(key: string, copy: Omit<Copy, 'bytes'>): boolean {
    drop(key)
    const bytes = key.length + copy.answer.text.length
    const most = limits.sourceCopiesBytesMax.value
    if (bytes > most) return false
    copies.set(key, { ...copy, bytes })
    bytesKept += bytes
    while (bytesKept > most) drop(copies.keys().next().value!)
    return true
  }
  const ageOf = ({ at }: Copy): number => clock.monotonic() - at
  function used(key: string, copy: Copy): KeptAnswer & { readonly age: number } {
    copies.delete(key)
    copies.set(key, copy)
    return { ...copy.answer, age: Math.floor(ageOf(copy) / 1000) }
  }

  return Object.freeze({
    /** Loads the copies from before a restart, once. */
    load(store: SourceCopies): void {
      if (loaded.has(store)) return
      loaded.add(store)
      for (const { key, at, answer } of store.stored()) {
        const known = JSON.parse(answer) as KeptAnswer
        const since = Math.max(0, clock.now() - at)
        const copy = { store, at: clock.monotonic() - since, isStale: true, isOutdated: false }
        put(key, { ...copy, answer: known })
      }
    },
    keep(key: string, { source, store }: { source: string; store: SourceCopies }, answer: KeptAnswer): void {
      const headers = Object.fromEntries(keptHeaders.map((name) => [name, answer.headers[name]]))
      const { status, text, contextKey } = answer
      const kept = { status, headers, text, contextKey }
      const copy = { answer: kept, at: clock.monotonic(), store, isStale: false, isOutdated: false }
      if (put(key, copy)) store.put({ key, source, at: clock.now(), answer: JSON.stringify(kept) })
    },
    /** The copy, if it is still fresh. */
    fresh(key: string, cacheDuration: string) {
      const copy = copies.get(key)
      const duration = parseDuration(cacheDuration)
      if (copy === undefined || copy.isStale || duration === undefined) return undefined
      return ageOf(copy) < addDuration(0, duration, 1) ? used(key, copy) : undefined
    },
    lastKnown(key: string) {
      const copy = copies.get(key)
      return copy === undefined ? undefined : used(key, copy)
    },
    /** An entity from a cached answer to another request with the same context. */
    entity(source: string, id: string, contextKey: string) {
      const quoted = JSON.stringify(id)
      for (const [key, copy] of [...copies].reverse()) {
        const { answer, isOutdated } = copy
        if (isOutdated || !key.startsWith(source) || !answer.text.includes(quoted)) continue
        // An answer to a request for some attributes has only a part of the entity.
        if (answer.contextKey !== contextKey || /[?&](?:attrs|pick|omit)=/.test(key)) continue
        const found = listOf(JSON.parse(answer.text) as Json).find((one) => isObject(one) && one['id'] === id)
        if (found !== undefined) return { ...used(key, copy), text: JSON.stringify(found) }
      }
      return undefined
    },
    drop,
    /** Marks all copies of a source as outdated. */
    outdate(source: string): void {
      for (const [key, copy] of copies) {
        if (!key.startsWith(source)) continue
        copy.isStale = true
        copy.isOutdated = true
      }
    },
  })
}
