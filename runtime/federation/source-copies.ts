/**
 * What sources that allow copies have told last, in memory up to a bound of bytes, the longest unused going first, and
 * on disk by way of the broker. A copy stands for its source as long as its registration says, and after that while the
 * source cannot be reached; after a restart it only does the latter.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { KeptCopies } from '#broker/sources/source-requests.ts'
import type { Json } from '#contract'
import { addDuration, parseDuration } from '#ngsi-ld/values/duration.ts'
import { isObject, listOf } from '#ngsi-ld/values/json.ts'

/** An answer of a source, as far as it is kept. */
export interface KeptAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly text: string
  /** Of the context of its names. */
  readonly contextKey: string
}

interface Copy {
  readonly answer: KeptAnswer
  readonly at: number
  readonly bytes: number
  readonly store: KeptCopies
  /** Something was written to the source since, or the gateway was not there to see. */
  isStale: boolean
  /** Something was written to the source since, or it said so. */
  isOutdated: boolean
}

const keptHeaders = ['content-type', 'content-range', 'link', 'ngsild-results-count']

/** Keys begin with that of the source. */
export function createSourceCopies({ clock }: { clock: Clock }) {
  /** In order of use. */
  const copies = new Map<string, Copy>()
  const loaded = new WeakSet<KeptCopies>()
  let bytesKept = 0

  function drop(key: string): void {
    const known = copies.get(key)
    if (known === undefined) return
    copies.delete(key)
    bytesKept -= known.bytes
    known.store.drop(key)
  }
  /** Whether there is room for it. */
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
    /** Takes up what was kept before a restart, the first time. */
    load(store: KeptCopies): void {
      if (loaded.has(store)) return
      loaded.add(store)
      for (const { key, at, answer } of store.stored()) {
        const known = JSON.parse(answer) as KeptAnswer
        const since = Math.max(0, clock.now() - at)
        const copy = { store, at: clock.monotonic() - since, isStale: true, isOutdated: false }
        put(key, { ...copy, answer: known })
      }
    },
    keep(key: string, { source, store }: { source: string; store: KeptCopies }, answer: KeptAnswer): void {
      const headers = Object.fromEntries(keptHeaders.map((name) => [name, answer.headers[name]]))
      const { status, text, contextKey } = answer
      const kept = { status, headers, text, contextKey }
      const copy = { answer: kept, at: clock.monotonic(), store, isStale: false, isOutdated: false }
      if (put(key, copy)) store.put({ key, source, at: clock.now(), answer: JSON.stringify(kept) })
    },
    /** The copy, if the source need not be asked again yet. */
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
    /** One entity out of what a source told when it was asked for something else, under the same names. */
    entity(source: string, id: string, contextKey: string) {
      const quoted = JSON.stringify(id)
      for (const [key, copy] of [...copies].reverse()) {
        const { answer, isOutdated } = copy
        if (isOutdated || !key.startsWith(source) || !answer.text.includes(quoted)) continue
        // Of a choice of attributes it would be a part.
        if (answer.contextKey !== contextKey || /[?&](?:attrs|pick|omit)=/.test(key)) continue
        const found = listOf(JSON.parse(answer.text) as Json).find((one) => isObject(one) && one['id'] === id)
        if (found !== undefined) return { ...used(key, copy), text: JSON.stringify(found) }
      }
      return undefined
    },
    drop,
    /** Copies of a source say no more what it holds. */
    outdate(source: string): void {
      for (const [key, copy] of copies) {
        if (!key.startsWith(source)) continue
        copy.isStale = true
        copy.isOutdated = true
      }
    },
  })
}
