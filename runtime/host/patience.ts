/**
 * How long somebody waits for an answer: until it comes, time is up, or nobody wants it any more. What works on it is told by the
 * signal, so that it can stop.
 */
import { limits } from '#base/limits/limits.ts'
import type { BrokerAnswer, BrokerRequest } from '#contract'

/** The answer of `work`, unless time or patience ends before. Rejects only with what `work` rejects with. */
export function within<T>(
  { timeoutMs, signal }: Pick<BrokerRequest, 'timeoutMs' | 'signal'>,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | BrokerAnswer> {
  const ms = timeoutMs ?? limits.pluginRequestMs.value
  const gone = new AbortController()
  const late = Promise.withResolvers<BrokerAnswer>()
  const giveUp = (answer: BrokerAnswer): void => {
    late.resolve(answer)
    gone.abort()
  }
  const abandon = (): void => giveUp({ failure: 'unreachable', reason: 'nobody waits for it any more' })
  const timer = setTimeout(() => giveUp({ failure: 'timeout', reason: `no answer within ${ms} ms` }), ms)
  if (signal?.aborted === true) abandon()
  else signal?.addEventListener('abort', abandon)
  const begun = gone.signal.aborted ? [] : [work(gone.signal)]
  return Promise.race([late.promise, ...begun]).finally(() => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abandon)
  })
}
