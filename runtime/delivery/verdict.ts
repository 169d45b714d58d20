/**
 * The result of a delivery attempt and its consequence. Pure. Only a response that rejects the delivery
 * itself can make it a dead letter; a network error or a status that may change never does.
 */

/**
 * - refused, unreachable, dns: no connection could be made
 * - tls, timeout, reset, protocol: connected, but no HTTP response
 * - status: a response other than 2xx
 * - forbidden: the settings do not allow this target
 * - unsendable: no valid request can be made (size, header, URI)
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
  /** Text for subscription status, dead letter and log. */
  readonly reason: string
  readonly status?: number | undefined
  /** Delay requested by the endpoint. */
  readonly retryAfterMs?: number | undefined
}

export type Sent = { readonly ok: true; readonly status: number } | Failure

/**
 * - down: probe until the endpoint is reachable
 * - retry: try again after a pause
 * - poison: dead letter after a few attempts
 * - dead-letter: dead letter at once
 */
export type Consequence = 'down' | 'retry' | 'poison' | 'dead-letter'

/** 4xx statuses that may change later: credentials, path, rate limit, timeout of the receiver. */
const retryable = new Set([401, 403, 404, 408, 410, 429])

export function consequenceOf(failure: Failure): Consequence {
  switch (failure.kind) {
    case 'refused':
    case 'unreachable':
    case 'dns':
      return 'down'
    case 'status':
      return isPoison(failure.status ?? 0) ? 'poison' : 'retry'
    case 'unsendable':
      return 'dead-letter'
    case 'tls':
    case 'timeout':
    case 'reset':
    case 'protocol':
    case 'forbidden':
      return 'retry'
  }
}

function isPoison(status: number): boolean {
  return status >= 400 && status < 500 && !retryable.has(status)
}
