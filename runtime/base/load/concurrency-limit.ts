/**
 * Admission: so many works at once, because more of them would only make everybody wait longer. Others wait in the order in which
 * they came; one whose client went away leaves its place, and who would wait behind too many is told so.
 */
import { GatewayError } from '#base/register/errors.ts'

export interface ConcurrencyLimitSettings {
  readonly atOnce: number
  readonly waitingMax: number
  /** What is admitted, for a person: `ranked queries`. */
  readonly what: string
}

export interface ConcurrencyLimit {
  /**
   * Does the work when it is its turn.
   * @param signal aborted when nobody waits for it any more.
   * @throws http.busy where too many wait, or nobody does.
   */
  run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

export function createConcurrencyLimit({
  atOnce,
  waitingMax,
  what,
}: ConcurrencyLimitSettings): ConcurrencyLimit {
  let running = 0
  const waiting = new Set<() => void>()

  function turn(signal: AbortSignal): Promise<void> | void {
    if (running < atOnce) {
      running++
      return
    }
    if (waiting.size >= waitingMax)
      throw new GatewayError('http.busy', `${waiting.size} ${what} wait already`)
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        waiting.delete(enter)
        reject(abandoned())
      }
      const enter = (): void => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      waiting.add(enter)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  /** Whoever ends hands its turn on. */
  function end(): void {
    const [next] = waiting
    if (next === undefined) running--
    else {
      waiting.delete(next)
      next()
    }
  }

  return Object.freeze({
    async run(signal, work) {
      if (signal.aborted) throw abandoned()
      await turn(signal)
      try {
        return await work()
      } finally {
        end()
      }
    },
  } satisfies ConcurrencyLimit)
}

/** What a work ends with for which nobody waits. */
export const abandoned = (): GatewayError =>
  new GatewayError('http.busy', 'the client did not wait for the answer')
