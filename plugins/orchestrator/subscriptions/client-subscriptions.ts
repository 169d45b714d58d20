/**
 * Requests for subscriptions, as clients send them to the proxy. A subscription without an address for its
 * notifications is the orchestrator's, and shared; all others are forwarded to the broker as they are. The
 * response to a shared one names the AMQP queue of the client in the header Selvedge-Queue, if it has one;
 * `amqp/topology.ts` chooses the name.
 */

import type { ForwardPort, ProxiedRequest } from '#contract'
import { isObject, type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData, notFound, notSupported } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { CachedRequest } from '#plugins/orchestrator/cache/cache-key.ts'
import { clientOf } from '#plugins/orchestrator/clients/client-identity.ts'
import { withPlatformContext } from '#plugins/orchestrator/context/missing-context.ts'
import type { ClientRequest, SharedSubscriptions } from './shared-subscriptions.ts'
import { isRefusal } from './subscribed-broker.ts'
import { isDeliveredHere } from './subscription-form.ts'
import type { SentSubscription } from './subscription-id.ts'

export interface ClientSubscriptionPorts {
  readonly broker: ForwardPort
  readonly shared: SharedSubscriptions
  /** The queue at the AMQP server that a client consumes, if it has one of its own. */
  readonly queueOf: (id: string, client: string) => string | undefined
  /** Responds to requests for the stream of a client. */
  readonly streams: (forwarded: ProxiedRequest, id: string, client: string) => Response
}

export type ClientSubscriptions = ReturnType<typeof createClientSubscriptions>

export function createClientSubscriptions({ broker, shared, queueOf, streams }: ClientSubscriptionPorts) {
  async function create(forwarded: ProxiedRequest, parsed: CachedRequest): Promise<Response> {
    const { request, environment } = forwarded
    const bytes = await environment.body()
    const body = parsedJson(bytes.toString())
    // The broker explains what is wrong with any other body.
    if (!isObject(body) || !isDeliveredHere(body))
      return broker.forward(await withPlatformContext({ ...forwarded, body: bytes }, parsed))
    const client = requestOf(forwarded)
    const id = await shared.subscribe(sentOf(request, body), client)
    const queue = queueOf(id, client.client)
    const headers = {
      'Content-Type': 'text/plain; charset=utf-8',
      ...(queue === undefined ? {} : { 'Selvedge-Queue': queue }),
    }
    return new Response(id, { headers })
  }

  async function remove(forwarded: ProxiedRequest, id: string): Promise<Response> {
    const isEnded = await shared.unsubscribe(id, tenantOf(forwarded.request), requestOf(forwarded))
    return isEnded ? new Response(null, { status: 204 }) : broker.forward(forwarded)
  }

  async function responseTo(forwarded: ProxiedRequest, parsed: CachedRequest): Promise<Response> {
    const { method, url } = forwarded.request
    // The main listener encodes slashes within the part that may be an id.
    const streamed = idIn(url, /\/subscriptions\/([^/?]+?)(?:\/|%2F)notifications(?:[/]|%2F)*(?:\?|$)/i)
    if (streamed !== undefined && shared.get(streamed)?.tenant === tenantOf(forwarded.request)) {
      const client = requestOf(forwarded)
      if (!shared.get(streamed)!.clients.has(client.client))
        throw notFound(`${client.client} has no subscription ${streamed}`)
      await shared.checkRights(streamed, client)
      return streams(forwarded, streamed, client.client)
    }
    const id = idIn(url, /\/subscriptions\/([^/?]+)[/]*(?:\?|$)/)
    if (id === undefined) return method === 'POST' ? create(forwarded, parsed) : broker.forward(forwarded)
    if (method === 'DELETE') return remove(forwarded, id)
    const isChanged = method === 'PATCH' && shared.get(id)?.tenant === tenantOf(forwarded.request)
    if (isChanged)
      throw notSupported('clients share this subscription; create another one, and delete this one')
    return broker.forward(forwarded)
  }

  return Object.freeze({
    /**
     * Responds to a request below `/ngsi-ld/v1/subscriptions`, with or without a trailing slash.
     *
     * @param parsed the same request, as its connection parsed it.
     */
    async respond(forwarded: ProxiedRequest, parsed: CachedRequest): Promise<Response> {
      try {
        return await responseTo(forwarded, parsed)
      } catch (error) {
        if (!isRefusal(error)) throw error
        const { status, headers, text } = error.refusal
        const type = headers['content-type'] ?? 'application/json'
        return new Response(text, { status, headers: { 'Content-Type': type } })
      }
    },
  })
}

/** The id in a path below `/subscriptions`; undefined for any other path. */
function idIn(url: string, path: RegExp): string | undefined {
  const [, segment = ''] = path.exec(url) ?? []
  if (segment === '') return undefined
  try {
    return decodeURIComponent(segment)
  } catch {
    throw badRequestData('is not valid percent-encoding', 'path')
  }
}

const tenantOf = ({ headers }: Request): string => headers.get('ngsild-tenant')?.trim() ?? ''

function sentOf(request: Request, body: JsonObject): SentSubscription {
  const link = request.headers.get('link') ?? ''
  const [, linkedContext] = /<([^<>]*)>[^<]*rel="?http:\/\/www\.w3\.org\/ns\/json-ld#context/.exec(link) ?? []
  return { body, linkedContext, tenant: tenantOf(request) }
}

/** The client, and its credentials for the broker; a token of this gateway stays here. */
function requestOf({ request: { headers }, environment: { arrival } }: ProxiedRequest): ClientRequest {
  const { id } = clientOf(headers, arrival?.incoming.socket)
  const credentials = (['authorization', 'x-auth-token'] as const).flatMap((name) => {
    const value = headers.get(name)
    return value === null || name === arrival?.tokenHeader ? [] : [[name, value] as const]
  })
  return { client: id, headers: Object.fromEntries(credentials) }
}
