/**
 * What sources that allow copies have told last, in memory, up to a bound of bytes; the longest unused goes first. A
 * copy stands for its source as long as its registration says, and after that until the source can be reached again.
 */
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { Json } from '#contract'
import type { Context } from '#ngsi-ld/context.ts'
import { addDuration, parseDuration } from '#ngsi-ld/duration.ts'
import { isObject, listOf } from '#ngsi-ld/json.ts'

/** An answer of a source, as far as it is kept. */
export interface KeptAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly text: string
  readonly context: Context
}

interface Copy {
  readonly answer: KeptAnswer
  readonly at: number
  readonly bytes: number
  /** Something was written to the source since. */
  isOutdated: boolean
}

const keptHeaders = ['content-type', 'content-range', 'link', 'ngsild-results-count']

/** Keys begin with that of the source. */
export function createSourceCopies({ clock }: { clock: Clock }) {
  /** In order of use. */
  const copies = new Map<string, Copy>()
  let bytesKept = 0

  function drop(key: string): void {
    const known = copies.get(key)
    if (known === undefined) return
    copies.delete(key)
    bytesKept -= known.bytes
  }
  const ageOf = ({ at }: Copy): number => clock.monotonic() - at
  function used(key: string, copy: Copy): KeptAnswer & { readonly age: number } {
    copies.delete(key)
    copies.set(key, copy)
    return { ...copy.answer, age: Math.floor(ageOf(copy) / 1000) }
  }

  return Object.freeze({
    keep(key: string, { headers, ...answer }: KeptAnswer): void {
      drop(key)
      const bytes = key.length + answer.text.length
      const most = limits.sourceCopiesBytesMax.value
      if (bytes > most) return
      const kept = Object.fromEntries(keptHeaders.map((name) => [name, headers[name]]))
      const copy = { answer: { ...answer, headers: kept }, at: clock.monotonic(), bytes, isOutdated: false }
      copies.set(key, copy)
      bytesKept += bytes
      while (bytesKept > most) drop(copies.keys().next().value!)
    },
    /** The copy, if the source need not be asked again yet. */
    fresh(key: string, cacheDuration: string) {
      const copy = copies.get(key)
      const duration = parseDuration(cacheDuration)
      if (copy === undefined || copy.isOutdated || duration === undefined) return undefined
      return ageOf(copy) < addDuration(0, duration, 1) ? used(key, copy) : undefined
    },
    lastKnown(key: string) {
      const copy = copies.get(key)
      return copy === undefined ? undefined : used(key, copy)
    },
    /** One entity out of what a source told when it was asked for something else, under the same names. */
    entity(source: string, id: string, { key: contextKey }: Context) {
      const quoted = JSON.stringify(id)
      for (const [key, copy] of [...copies].reverse()) {
        const { answer, isOutdated } = copy
        if (isOutdated || !key.startsWith(source) || !answer.text.includes(quoted)) continue
        // Of a choice of attributes it would be a part.
        if (answer.context.key !== contextKey || /[?&](?:attrs|pick|omit)=/.test(key)) continue
        const found = listOf(JSON.parse(answer.text) as Json).find((one) => isObject(one) && one['id'] === id)
        if (found !== undefined) return { ...used(key, copy), text: JSON.stringify(found) }
      }
      return undefined
    },
    drop,
    /** Copies of a source say no more what it holds. */
    outdate(source: string): void {
      for (const [key, copy] of copies) if (key.startsWith(source)) copy.isOutdated = true
    },
  })
}
