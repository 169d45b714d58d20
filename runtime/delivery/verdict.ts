/**
 * What one attempt came to, and what follows from it. Pure. Only an answer that says the delivery itself is wrong
 * may bury it; a network error or an answer that may heal never does.
 */

/**
 * - refused, unreachable, dns: no connection could be made
 * - tls, timeout, reset, protocol: connected, but no answer in HTTP came
 * - status: an answer other than 2xx
 * - forbidden: our settings do not allow this target
 * - unsendable: no request can be made of it (size, header, URI)
 */
export type FailureKind =
  | 'refused'
  | 'unreachable'
  | 'dns'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'status'
  | 'forbidden'
  | 'unsendable'

export interface Failure {
  readonly ok: false
  readonly kind: FailureKind
  /** For people: subscription status, dead letter, log. */
  readonly reason: string
  readonly status?: number | undefined
  /** How long the endpoint asks us to wait. */
  readonly retryAfterMs?: number | undefined
}

export type Sent = { readonly ok: true; readonly status: number } | Failure

/** down: probe until it can be reached; retry: after a pause; poison: a few tries, then bury; bury: at once. */
export type Consequence = 'down' | 'retry' | 'poison' | 'bury'

/** Client errors that a change at the receiver, or time, heals: credentials, path, rate, its own timeout. */
const healing = new Set([401, 403, 404, 408, 410, 429])

export function consequenceOf(failure: Failure): Consequence {
  switch (failure.kind) {
    case 'refused':
    case 'unreachable':
    case 'dns':
      return 'down'
    case 'status':
      return isPoison(failure.status ?? 0) ? 'poison' : 'retry'
    case 'unsendable':
      return 'bury'
    case 'tls':
    case 'timeout':
    case 'reset':
    case 'protocol':
    case 'forbidden':
      return 'retry'
  }
}

function isPoison(status: number): boolean {
  return status >= 400 && status < 500 && !healing.has(status)
}
