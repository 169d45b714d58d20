/**
 * Handles stop signals. The first signal requests an orderly stop; a later one ends the process at once. Two
 * signals within half a second count as one, because a terminal and a parent process may both send it.
 */
import type { Clock } from '#base/time/clock.ts'

const sameRequestMs = 500
const names = ['SIGINT', 'SIGTERM'] as const

/** Resolves to the first signal. The next one ends the process with 128 + its number. */
export function endSignal(clock: Clock): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first: number | undefined
    for (const name of names) {
      process.on(name, () => {
        if (first === undefined) {
          first = clock.monotonic()
          resolve(name)
        } else if (clock.monotonic() - first > sameRequestMs) process.exit(name === 'SIGINT' ? 130 : 143)
      })
    }
  })
}
