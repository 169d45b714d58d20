/**
 * The end that a person or a supervisor asks for. The first signal asks for an orderly end; a later one ends the
 * process at once. Two within half a second are one wish: a terminal and a parent process may both pass it on.
 */
import type { Clock } from '#base/time/clock.ts'

const sameWishMs = 500
const names = ['SIGINT', 'SIGTERM'] as const

/** Settles with the first signal. From then on the next one ends the process with 128 + its number. */
export function endSignal(clock: Clock): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first: number | undefined
    for (const name of names) {
      process.on(name, () => {
        if (first === undefined) {
          first = clock.monotonic()
          resolve(name)
        } else if (clock.monotonic() - first > sameWishMs) process.exit(name === 'SIGINT' ? 130 : 143)
      })
    }
  })
}
