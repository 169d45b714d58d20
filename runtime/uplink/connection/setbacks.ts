/**
 * How long single things were not taken while their broker answered for each of them: by entity, in memory. Who is over is
 * set aside, so that one thing that fails over there does not hold up all others; one that is taken is forgotten here.
 */
import { limits } from '#base/limits/limits.ts'

export interface Setbacks {
  /** Notes that something of an entity was not taken; true when that went on for so long (ms), over a few tries. */
  isExhausted(id: string, patienceMs: number): boolean
  accepted(id: string): void
}

export function createSetbacks(monotonic: () => number): Setbacks {
  const failing = new Map<string, { readonly since: number; tries: number }>()
  return Object.freeze({
    isExhausted(id, patienceMs) {
      const now = monotonic()
      const one = failing.get(id) ?? { since: now, tries: 0 }
      one.tries++
      failing.set(id, one)
      if (failing.size > limits.uplinkSetbacksMax.value) failing.delete(failing.keys().next().value!)
      return one.tries > limits.uplinkSetbackTries.value && now - one.since >= patienceMs
    },
    accepted(id) {
      failing.delete(id)
    },
  } satisfies Setbacks)
}
