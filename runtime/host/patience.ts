/**
 * Bounds the wait for an answer: until it arrives, time is up, or the caller cancels. A signal aborts the
 * work.
 */
import { limits } from '#base/limits/limits.ts'
import type { BrokerAnswer, BrokerRequest } from '#contract'

/** The answer of `work`, or a failure after a timeout or cancellation. Rejects only if `work` rejects. */
export function within<T>(
  { timeoutMs, signal }: Pick<BrokerRequest, 'timeoutMs' | 'signal'>,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | BrokerAnswer> {
  const ms = timeoutMs ?? limits.pluginRequestMs.value
  const abort = new AbortController()
  const late = Promise.withResolvers<BrokerAnswer>()
  const giveUp = (answer: BrokerAnswer): void => {
    late.resolve(answer)
    abort.abort()
  }
  const abandon = (): void => giveUp({ failure: 'unreachable', reason: 'the request was cancelled' })
  const timer = setTimeout(() => giveUp({ failure: 'timeout', reason: `no answer within ${ms} ms` }), ms)
  if (signal?.aborted === true) abandon()
  else signal?.addEventListener('abort', abandon)
  const begun = abort.signal.aborted ? [] : [work(abort.signal)]
  return Promise.race([late.promise, ...begun]).finally(() => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abandon)
  })
}
