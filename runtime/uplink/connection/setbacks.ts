/**
 * Tracks, by entity and in memory, how long the centre has failed to accept single changes. After a limit the
 * change is put aside, so that one failing entity does not hold up all others. An accepted change clears its
 * entry.
 */
import { limits } from '#base/limits/limits.ts'

export function createSetbacks(monotonic: () => number) {
  const failing = new Map<string, { readonly since: number; tries: number }>()
  return Object.freeze({
    /** Records a failure; true once failures lasted longer than `patienceMs` over several tries. */
    isExhausted(id: string, patienceMs: number): boolean {
      const now = monotonic()
      const one = failing.get(id) ?? { since: now, tries: 0 }
      one.tries++
      failing.set(id, one)
      if (failing.size > limits.uplinkSetbacksMax.value) failing.delete(failing.keys().next().value!)
      return one.tries > limits.uplinkSetbackTries.value && now - one.since >= patienceMs
    },
    accepted(id: string): void {
      failing.delete(id)
    },
  })
}
