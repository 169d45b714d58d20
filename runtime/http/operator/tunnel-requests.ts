/**
 * Serves requests from a tunnel with the gateway's own routes, limited to the rights of its other end. The
 * path is checked in the form used for routing, so no other spelling of it can bypass the check.
 */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { GatewayError } from '#base/register/errors.ts'
import { sourceNotificationsPath } from '#federation/subscription-forwarding.ts'
import type { TunnelAnswer, TunnelRequest } from '#federation/tunnel-end.ts'
import type { HttpEnv } from '#http/request/http-environment.ts'
import type { TunnelGuest } from '#http/request/tunnel-guest.ts'

/**
 * read: state and history; subscribe: own subscriptions; write: everything else of NGSI-LD, including
 * subscriptions that notify third parties; notify: deliver notifications of subscriptions.
 */
export type TunnelRight = 'read' | 'subscribe' | 'write' | 'notify'

export type ServeTunnelled = (request: TunnelRequest) => Promise<TunnelAnswer>

/**
 * @param guest the other end, if it may subscribe.
 *
 * Never rejects.
 */
export function createTunnelled(
  app: {
    fetch(request: Request, env: HttpEnv): Response | Promise<Response>
    refuse(error: unknown): Response
  },
  rights: ReadonlySet<TunnelRight>,
  guest?: TunnelGuest,
): ServeTunnelled {
  return async ({ method, path, headers, body }) => {
    let response: Response
    try {
      const url = new URL(`http://localhost${path}`)
      const right = rightFor(method, url.pathname)
      if (right === undefined || !rights.has(right))
        throw new GatewayError(
          'http.forbidden',
          `${method} ${url.pathname} is not allowed through this tunnel`,
        )
      const bytes = Buffer.from(body)
      const length = bytes.length === 0 ? {} : { 'content-length': String(bytes.length) }
      const incoming = Object.assign(new IncomingMessage(new Socket()), {
        method,
        url: path,
        headers: { ...inLowerCase(headers), ...length },
      })
      response = await app.fetch(new Request(url, { method }), {
        incoming,
        body: bytes,
        ...(guest === undefined ? {} : { guest }),
      })
    } catch (error) {
      response = app.refuse(error)
    }
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: await response.text(),
    }
  }
}

/** The right that a request needs; undefined if it is never allowed through a tunnel. */
export function rightFor(method: string, path: string): TunnelRight | undefined {
  if (path.startsWith(`${sourceNotificationsPath}/`)) return method === 'POST' ? 'notify' : undefined
  if (path === '/selvedge/v1/info') return method === 'GET' ? 'read' : undefined
  const [, noun, rest = ''] = /^\/ngsi-ld\/v1\/([A-Za-z]+)(\/.*)?$/.exec(path) ?? []
  if (noun === undefined) return undefined
  // Streams never end.
  if (/^\/[^/]*\/notifications\/?$/.test(rest)) return undefined
  if (noun === 'subscriptions') return 'subscribe'
  // Registrations contain credentials of other brokers.
  if (noun.startsWith('csource')) return 'write'
  const isQuery = method === 'POST' && /^\/query\/?$/.test(rest.replace(/^\/entityOperations/, ''))
  if (method === 'GET' || method === 'HEAD' || isQuery || noun === 'entityMaps') return 'read'
  return 'write'
}

const inLowerCase = (headers: TunnelRequest['headers']): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
