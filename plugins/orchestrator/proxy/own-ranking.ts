/** The ranking plugin of this gateway as a target of forwarded requests, in process. */
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerPort, ForwardPort } from '#contract'

/** Headers that describe how the answer was encoded for a connection. */
const unsent: ReadonlySet<string> = new Set(['content-length', 'content-encoding', 'transfer-encoding'])

export function createOwnRanking(component: BrokerPort, timeoutMs: number): ForwardPort {
  return Object.freeze({
    get address() {
      return component.address
    },
    async forward({ request: { method, url, headers }, environment: { signal } }) {
      const path = url.slice(url.indexOf('/', url.indexOf('://') + 3))
      const answer = await component.exchange({
        method,
        path,
        headers: Object.fromEntries([...headers].filter(([name]) => !unsent.has(name))),
        signal,
        timeoutMs,
      })
      if ('failure' in answer)
        throw new GatewayError(
          answer.failure === 'timeout' ? 'peer.timeout' : 'peer.unavailable',
          `the ranking gave no answer: ${answer.reason}`,
        )
      const kept = Object.entries(answer.headers).filter(([name]) => !unsent.has(name))
      const isBare = method === 'HEAD' || [204, 205, 304].includes(answer.status)
      return new Response(isBare ? null : answer.text, { status: answer.status, headers: kept })
    },
  } satisfies ForwardPort)
}
