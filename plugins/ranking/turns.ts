/**
 * Turns: only so many at once, the others wait in the order they came, and who would wait behind too many is told so.
 */
import { GatewayError } from '#base/errors.ts'

export interface Turns {
  /** @throws http.busy when too many wait. */
  take<T>(work: () => Promise<T>): Promise<T>
}

export function createTurns(atOnce: number, waitingMax: number): Turns {
  const waiting: (() => void)[] = []
  let running = 0
  return Object.freeze({
    async take(work) {
      if (running >= atOnce) {
        if (waiting.length >= waitingMax)
          throw new GatewayError('http.busy', 'too many ranked queries at once', { retryAfterSeconds: 1 })
        await new Promise<void>((resolve) => waiting.push(resolve))
      } else running++
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next === undefined) running--
        else next()
      }
    },
  } satisfies Turns)
}
