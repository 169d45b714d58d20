/**
 * Requests to one registered broker: at a pace, with patience, and with one word for how it went. What a broker answers is
 * judged here, so that those who ask know only two ways of failure: it is down, or it answers and refuses.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { BrokerAnswer, BrokerPort, BrokerRequest } from '#contract'

export type Answered = Extract<BrokerAnswer, { status: number }>

/** Why nothing came of it. */
export interface Trouble {
  readonly kind: 'down' | 'refused'
  readonly reason: string
}

export type Result<T> = { readonly value: T } | { readonly trouble: Trouble }

export interface AskingPorts {
  readonly port: BrokerPort
  readonly signal: AbortSignal
  readonly monotonic: () => number
  /** Least time between two pages, ms. */
  readonly paceMs: number
}

export type Asking = ReturnType<typeof createAsking>

export function createAsking({ port, signal, monotonic, paceMs }: AskingPorts) {
  let next = 0

  /** Whoever leaves off does not wait for an answer. */
  function ask(request: BrokerRequest): Promise<BrokerAnswer> {
    const left: BrokerAnswer = { failure: 'unreachable', reason: 'nobody waits for it any more' }
    if (signal.aborted) return Promise.resolve(left)
    return new Promise((resolve) => {
      const abandon = (): void => resolve(left)
      signal.addEventListener('abort', abandon, { once: true })
      void port.exchange({ timeoutMs: limits.indexRequestMs.value, signal, ...request }).then((answer) => {
        signal.removeEventListener('abort', abandon)
        resolve(answer)
      })
    })
  }

  return Object.freeze({
    address: port.address,

    /** Waits until the next page may be asked for. */
    async pace(): Promise<void> {
      const now = monotonic()
      const wait = next - now
      next = Math.max(now, next) + paceMs
      if (wait > 0) await delay(wait, undefined, { signal, ref: false })
    },

    /** An answer whose status is among the wanted ones. */
    async want(request: BrokerRequest, wanted: readonly number[]): Promise<Result<Answered>> {
      const answer = await ask(request)
      if ('failure' in answer) return { trouble: { kind: 'down', reason: answer.reason } }
      if (wanted.includes(answer.status)) return { value: answer }
      return { trouble: troubleOf(request, answer) }
    },
  })
}

function troubleOf({ method, path }: BrokerRequest, { status, text }: Answered): Trouble {
  const what = `${method} ${path.split('?', 1)[0]} was answered with ${status}`
  // A proxy in front of a broker that is away says so.
  const isAway = status === 502 || status === 503 || status === 504
  const said = text.slice(0, limits.indexReasonCharacters.value).replaceAll(/\s+/g, ' ').trim()
  const isClosed = status === 401 || status === 403
  const hint = isClosed ? '; its token belongs in indexing.brokers of the settings (tokenFile, identity)' : ''
  return { kind: isAway ? 'down' : 'refused', reason: `${said === '' ? what : `${what}: ${said}`}${hint}` }
}
