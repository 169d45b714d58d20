/**
 * The NGSI-LD interface of the orchestrator: a transparent proxy. Each request goes to the broker, a GET of
 * entities with weights to the ranking, one for subscriptions to `subscriptions/`. Responses are cached, and
 * requests are counted by client.
 */
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { DirectRequest, ForwardPort, ProxiedRequest, Reply, RouteEnvironment } from '#contract'
import type { CachedRequest } from '#plugins/orchestrator/cache/cache-key.ts'
import type { ResponseCache } from '#plugins/orchestrator/cache/response-cache.ts'
import { type ClientIdentity, clientOf } from '#plugins/orchestrator/clients/client-identity.ts'
import type { Clients } from '#plugins/orchestrator/clients/clients.ts'
import { resourceOf } from '#plugins/orchestrator/clients/used-resource.ts'
import { withPlatformContext } from '#plugins/orchestrator/context/missing-context.ts'
import type { ClientSubscriptions } from '#plugins/orchestrator/subscriptions/client-subscriptions.ts'
import { failedAnswer } from './broker-errors.ts'
import { plainHeaders } from './plain-headers.ts'
import { isWrite, kindOf } from './request-kinds.ts'

export interface ProxyPorts {
  readonly broker: ForwardPort
  readonly ranking: ForwardPort
  readonly subscriptions: ClientSubscriptions
  readonly cache: ResponseCache
  readonly clients: Clients
  /** Whether an address is that of the orchestrator itself. */
  readonly isLoop: (address: string) => boolean
}

/** The client of a request, and what became of it. */
interface Outcome {
  readonly client: ClientIdentity
  readonly status: number
  /** Location of a resource that the request created. */
  readonly location?: string | null
}

export function createProxy({ broker, ranking, subscriptions, cache, clients, isLoop }: ProxyPorts) {
  const checkLoop = ({ address }: ForwardPort): void => {
    if (isLoop(address))
      throw new GatewayError('peer.loop', `${address} is the address of the orchestrator itself`)
  }

  async function responseTo(forwarded: ProxiedRequest, request: CachedRequest): Promise<Response> {
    const { method, target, headers } = request
    const kind = kindOf(method, target)
    checkLoop(kind === 'ranked' ? ranking : broker)
    if (kind === 'ranked') return ranking.forward(forwarded)
    if (kind === 'subscriptions') return subscriptions.respond(forwarded, request)
    if (!isWrite(method, target)) return cache.respond(forwarded, request)
    const tenant = headers.get('ngsild-tenant') ?? ''
    cache.noteWrite(tenant)
    try {
      return await broker.forward(await withPlatformContext(forwarded, request))
    } finally {
      cache.noteWrite(tenant)
    }
  }

  function note({ method, target, headers }: CachedRequest, { client, status, location }: Outcome): void {
    const tenant = headers.get('ngsild-tenant') ?? ''
    clients.note({ tenant, client, method, resource: resourceOf(target, location), status })
  }

  return Object.freeze({
    /** Responds at once, from the cache; undefined if `respond` has to respond. */
    direct({ method = '', url: target = '', headers: given, socket }: DirectRequest): Reply | undefined {
      const request = { method, target, headers: plainHeaders({ headers: given }) }
      const reply = cache.direct(request)
      if (reply !== undefined)
        note(request, { client: clientOf(request.headers, socket), status: reply.status })
      return reply
    },
    async respond(request: Request, environment: RouteEnvironment): Promise<Response> {
      const { method, url } = request
      const { incoming } = environment.arrival ?? {}
      const target = url.slice(url.indexOf('/', url.indexOf('://') + 3))
      const headers = incoming === undefined ? request.headers : plainHeaders(incoming)
      const received: CachedRequest = { method, target, headers }
      const client = clientOf(headers, incoming?.socket)
      try {
        const response = await responseTo({ request, environment }, received)
        const { status } = response
        // Reading the headers of a response makes sending it slower.
        note(received, { client, status, location: status === 201 ? response.headers.get('location') : null })
        return response
      } catch (error) {
        note(received, { client, status: toGatewayError(error).entry.status })
        return failedAnswer(error)
      }
    },
  })
}
