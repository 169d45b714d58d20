/**
 * Sends requests to one registered broker, rate-limited and with a timeout. Classifies each failure as one of
 * two kinds: the broker is down, or it answers and refuses.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { BrokerAnswer, BrokerPort, BrokerRequest } from '#contract'

export type BrokerResponse = Extract<BrokerAnswer, { status: number }>

/** Why a request failed. */
export interface RequestTrouble {
  readonly kind: 'down' | 'refused'
  readonly reason: string
  /** Whether the broker is down because it did not answer in time. */
  readonly isTimeout?: boolean
}

export type Result<T> = { readonly value: T } | { readonly trouble: RequestTrouble }

export interface BrokerClientPorts {
  readonly port: BrokerPort
  readonly signal: AbortSignal
  readonly monotonic: () => number
  /** Minimum time between two pages, ms. */
  readonly paceMs: number
}

export type BrokerClient = ReturnType<typeof createBrokerClient>

export function createBrokerClient({ port, signal, monotonic, paceMs }: BrokerClientPorts) {
  let next = 0

  /** Sends a request. An abort resolves it at once, without waiting for the answer. */
  function send(request: BrokerRequest): Promise<BrokerAnswer> {
    const aborted: BrokerAnswer = { failure: 'unreachable', reason: 'the request was aborted' }
    if (signal.aborted) return Promise.resolve(aborted)
    return new Promise((resolve) => {
      const abandon = (): void => resolve(aborted)
      signal.addEventListener('abort', abandon, { once: true })
      void port.exchange({ timeoutMs: limits.clientRequestMs.value, signal, ...request }).then((answer) => {
        signal.removeEventListener('abort', abandon)
        resolve(answer)
      })
    })
  }

  return Object.freeze({
    address: port.address,

    /** Waits until the rate limit permits the next page. */
    async pace(): Promise<void> {
      const now = monotonic()
      const wait = next - now
      next = Math.max(now, next) + paceMs
      if (wait > 0) await delay(wait, undefined, { signal, ref: false })
    },

    /** Sends a request and returns the response if its status is one of those expected. */
    async request(request: BrokerRequest, expected: readonly number[]): Promise<Result<BrokerResponse>> {
      const answer = await send(request)
      if ('failure' in answer) {
        const isTimeout = answer.failure === 'timeout'
        return { trouble: { kind: 'down', reason: answer.reason, isTimeout } }
      }
      if (expected.includes(answer.status)) return { value: answer }
      return { trouble: troubleOf(request, answer) }
    },
  })
}

function troubleOf({ method, path }: BrokerRequest, { status, text }: BrokerResponse): RequestTrouble {
  const what = `${method} ${path.split('?', 1)[0]} was answered with ${status}`
  // A proxy in front of an unavailable broker sends these.
  const isAway = status === 502 || status === 503 || status === 504
  const body = text.slice(0, limits.clientReasonCharacters.value).replaceAll(/\s+/g, ' ').trim()
  const isClosed = status === 401 || status === 403
  const hint = isClosed ? '; set its token in the settings (tokenFile)' : ''
  return { kind: isAway ? 'down' : 'refused', reason: `${body === '' ? what : `${what}: ${body}`}${hint}` }
}
