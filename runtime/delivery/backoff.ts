/**
 * Computes the pause after a failed response of an endpoint. Pure. During the first two minutes, pauses are
 * at most 1.5 seconds, so that a restarted receiver is noticed at once. Later they grow with the duration of
 * the failure, up to a minute. Unreachable endpoints are probed instead.
 */
import { limits } from '#base/limits/limits.ts'

const firstMs = 250
const quickMs = 1500
const patienceMs = 120_000

/**
 * Pause before the next attempt, ms. `tries` counts consecutive failures (from 1), `failingMs` is their
 * duration, and `random` in [0, 1) adds jitter within the upper half of the pause.
 */
export function backoffMs(tries: number, failingMs: number, random: number): number {
  const grown = firstMs * 2 ** Math.min(tries - 1, 20)
  const ceiling = Math.max(quickMs, Math.min(limits.deliveryBackoffMsMax.value, (failingMs - patienceMs) / 8))
  return Math.round(Math.min(grown, ceiling) * (0.5 + random / 2))
}

/**
 * A Retry-After header as ms from `now`: delay seconds or an HTTP date [RFC 9110 10.2.3]. Undefined if
 * absent, malformed or in the past; capped at an hour.
 */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined
  // An HTTP date starts with a weekday; Date.parse would also accept other texts, such as -5.
  const date = /^[a-z]/i.test(header) ? Date.parse(header) : Number.NaN
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : date - now
  return ms > 0 ? Math.min(ms, limits.deliveryPauseMsMax.value) : undefined
}
