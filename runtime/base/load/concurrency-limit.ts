/**
 * A concurrency limit with a bounded queue, because more concurrent work would only make every client wait
 * longer. Queued work starts in order of arrival. A client that disconnects leaves the queue; a full queue
 * rejects requests.
 */
import { GatewayError } from '#base/register/errors.ts'

export interface ConcurrencyLimitSettings {
  readonly atOnce: number
  readonly waitingMax: number
  /** Name of the work in error messages, such as `ranked queries`. */
  readonly what: string
}

export interface ConcurrencyLimit {
  /**
   * Runs the work as soon as the limit allows.
   * @param signal aborted when the client disconnects.
   * @throws http.busy if the queue is full or the client disconnected.
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

  function enterOrWait(signal: AbortSignal): Promise<void> | void {
    if (running < atOnce) {
      running++
      return
    }
    if (waiting.size >= waitingMax)
      throw new GatewayError('http.busy', `too many ${what} are queued (${waiting.size}); retry later`)
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

  /** Starts the next queued work in place of the finished one. */
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
      await enterOrWait(signal)
      try {
        return await work()
      } finally {
        end()
      }
    },
  } satisfies ConcurrencyLimit)
}

/** The error of work whose client disconnected. */
export const abandoned = (): GatewayError =>
  new GatewayError('http.busy', 'the client disconnected before the response')
