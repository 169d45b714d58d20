/**
 * How many queries of the index are worked on at once: more of them in turns would only make everybody wait longer, those who ask
 * the gateway for other things too. Others wait in the order in which they came; one whose client went away leaves its place.
 */
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'

export function createAdmission() {
  let running = 0
  const waiting = new Set<() => void>()

  function turn(signal: AbortSignal): Promise<void> | void {
    if (running < limits.indexQueriesMax.value) {
      running++
      return
    }
    if (waiting.size >= limits.indexQueriesWaiting.value)
      throw new GatewayError('http.busy', `${waiting.size} queries wait for the index`)
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
    /** Does the work when it is its turn. @throws http.busy where too many wait. */
    async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      if (signal.aborted) throw abandoned()
      await turn(signal)
      try {
        return await work()
      } finally {
        end()
      }
    },
  })
}

/** What a query ends with whose answer nobody waits for. */
export const abandoned = (): GatewayError =>
  new GatewayError('http.busy', 'the client did not wait for the answer')
