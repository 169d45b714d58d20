/**
 * How long to wait after an endpoint answered with a failure. Pure. In the first two minutes of trouble a retry
 * comes at least every one and a half seconds, so that a restart of the receiver is noticed at once; after that the
 * pause grows with the trouble itself, to a minute. Endpoints that cannot be reached at all are probed instead.
 */
import { limits } from '#base/limits/limits.ts'

const firstMs = 250
const quickMs = 1500
const patienceMs = 120_000

/**
 * Pause in ms before the next try. `tries` counts failures in a row (from 1), `failingMs` is how long they have
 * lasted, `dice` in [0, 1) spreads the pause over the upper half of what it may be.
 */
export function backoffMs(tries: number, failingMs: number, dice: number): number {
  const grown = firstMs * 2 ** Math.min(tries - 1, 20)
  const ceiling = Math.max(quickMs, Math.min(limits.deliveryBackoffMsMax.value, (failingMs - patienceMs) / 8))
  return Math.round(Math.min(grown, ceiling) * (0.5 + dice / 2))
}

/**
 * A Retry-After header as ms from `now`: delay seconds or an HTTP date [RFC 9110 10.2.3]. Undefined when absent,
 * malformed or past; never above an hour, whatever the peer wishes.
 */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined
  // A date begins with a weekday; other texts, such as -5, may be dates to the runtime.
  const date = /^[a-z]/i.test(header) ? Date.parse(header) : Number.NaN
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : date - now
  return ms > 0 ? Math.min(ms, limits.deliveryPauseMsMax.value) : undefined
}
