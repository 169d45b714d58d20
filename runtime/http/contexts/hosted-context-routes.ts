/**
 * Routes of the stored @contexts (GS CIM 009, 5.13, 6.29 and 6.30). Three kinds exist: hosted by a tenant,
 * created implicitly for Link headers, and cached from other servers and shared by all tenants. A hosted
 * context is identified by its local id or its URL, a cached one by its source URL. The core context is part
 * of the gateway: it is listed and cannot be deleted.
 */

import { hash, randomUUID } from 'node:crypto'
import {
  type Contexts,
  type ContextUses,
  hostedContextsPath,
  hostedIdOf,
} from '#broker/contexts/context-resolver.ts'
import type { HostedContext } from '#broker/contexts/hosted-contexts.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import type { HttpContext } from '#http/request/body.ts'
import { type ApiRequest, originOf } from '#http/request/request.ts'
import { isCoreContextUrl } from '#ngsi-ld/context/core-context.ts'
import { truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, own } from '#ngsi-ld/values/json.ts'
import { badRequestData, notFound, notSupported } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** A stored context of any kind. */
interface Stored {
  readonly url: string
  readonly localId: string
  readonly kind: 'Hosted' | 'Cached' | 'ImplicitlyCreated'
  readonly createdAt: number
  readonly expiresAt?: number
}

const kinds: readonly string[] = ['Hosted', 'Cached', 'ImplicitlyCreated']
const listParameters = new Set(['details', 'kind'])
const detailsParameter = new Set(['details'])
const reloadParameter = new Set(['reload'])

export interface JsonLdContextPorts extends ApiPorts {
  readonly contexts: Contexts
  /** Start of the process, ms: the creation time reported for the core context. */
  readonly startedAt: number
}

export function createJsonLdContextRoutes({ requests, answers, contexts, startedAt }: JsonLdContextPorts) {
  const core: Stored = cachedAs(contexts.core.address!, startedAt)

  const allOf = (c: HttpContext, broker: TenantBroker): readonly Stored[] => [
    core,
    ...contexts.cached.list().map(({ url, fetched, expires }) => cachedAs(url, fetched, expires)),
    ...broker.hosted.list().map((context) => hostedAs(c, context)),
  ]

  /** @throws ngsi-ld.not-found */
  const find = (c: HttpContext, { hosted }: TenantBroker): Stored => {
    const name = c.req.param('context') ?? ''
    const known = hosted.get(hostedIdOf(name) ?? name)
    if (known !== undefined) return hostedAs(c, known)
    if (isCoreContextUrl(name)) return cachedAs(name, startedAt)
    const all = [
      core,
      ...contexts.cached.list().map(({ url, fetched, expires }) => cachedAs(url, fetched, expires)),
    ]
    const found = all.find(({ url, localId }) => url === name || localId === name)
    if (found === undefined) throw notFound(`no @context ${name} is stored`)
    return found
  }

  const serve = (c: HttpContext, request: ApiRequest): Response => {
    const wantsDetails = truthOf(request.parameters, 'details') === true
    const found = find(c, request.broker)
    if (wantsDetails) return answers.data(request, detailsOf(found, contexts.uses(found.url)))
    if (found.kind === 'Cached')
      throw notSupported(`${found.url} is only cached here; fetch it from its own address`)
    return answers.data(request, request.broker.hosted.document(found.localId), {
      headers: { 'Content-Type': request.type },
    })
  }

  return Object.freeze({
    async add(c: HttpContext): Promise<Response> {
      const request = await requests.document(c, { creates: true })
      const context = isObject(request.body) ? own(request.body, '@context') : undefined
      if (context === undefined || context === null) throw badRequestData('is missing', '@context')
      await contexts.check(context, request.tenant)
      const id = randomUUID()
      await (await request.enter()).hosted.add(id, { '@context': context })
      return answers.created(request, `${hostedContextsPath}/${id}`)
    },

    async list(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, listParameters)
      const kind = request.parameters.get('kind')
      if (kind !== undefined && !kinds.includes(kind)) {
        throw badRequestData(`must be one of ${kinds.join(', ')}`, 'kind')
      }
      const wantsDetails = truthOf(request.parameters, 'details') === true
      const found = allOf(c, request.broker).filter((stored) => kind === undefined || stored.kind === kind)
      return answers.data(
        request,
        found.map((stored) => (wantsDetails ? detailsOf(stored, contexts.uses(stored.url)) : stored.url)),
      )
    },

    async serve(c: HttpContext): Promise<Response> {
      return serve(c, await requests.read(c, detailsParameter))
    },

    async remove(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, reloadParameter)
      const reloads = truthOf(request.parameters, 'reload') === true
      const { url, localId, kind } = find(c, request.broker)
      if (reloads && kind !== 'Cached')
        throw badRequestData('is allowed only for a cached @context', 'reload')
      const isCore = isCoreContextUrl(url)
      if (isCore && !reloads) throw badRequestData('the core @context cannot be deleted')
      if (kind !== 'Cached') {
        await request.broker.hosted.remove(localId)
        contexts.dropped(localId)
      } else if (!reloads) await contexts.cached.forget(url)
      // The core context is built in and never fetched, so a reload has nothing to do.
      else if (!isCore) await contexts.cached.reload(url)
      return answers.noContent(request)
    },
  })
}

const cachedAs = (url: string, createdAt: number, expiresAt?: number): Stored => ({
  url,
  localId: hash('sha256', url).slice(0, 32),
  kind: 'Cached',
  createdAt,
  ...(expiresAt === undefined ? {} : { expiresAt }),
})

const hostedAs = (c: HttpContext, { id, kind, createdAt }: HostedContext): Stored => ({
  url: `${originOf(c)}${hostedContextsPath}/${id}`,
  localId: id,
  kind,
  createdAt,
})

const detailsOf = ({ url, localId, kind, createdAt, expiresAt }: Stored, { hits, last }: ContextUses) => ({
  URL: url,
  localId,
  kind,
  createdAt: msToDateTime(createdAt),
  ...(last === undefined ? {} : { lastUsage: msToDateTime(last) }),
  numberOfHits: hits,
  ...(expiresAt === undefined ? {} : { expiresAt: msToDateTime(expiresAt) }),
})
