/**
 * Routes of documents that are created, listed, retrieved, changed and deleted as a whole: subscriptions,
 * registrations of context sources, subscriptions to registrations. Parsers validate the documents and the
 * broker acts on them; this file holds their common HTTP behaviour.
 */

import { randomUUID } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { Json } from '#contract'
import type { ApiPorts } from '#http/request/api-ports.ts'
import type { HttpContext } from '#http/request/body.ts'
import { optionsOf } from '#http/request/negotiate.ts'
import { pageLinks, textsWithin } from '#http/request/paging.ts'
import { idOf, pathSegment } from '#http/request/path-ids.ts'
import { type ApiRequest, type BodyRequest, type RequestHead, withWarning } from '#http/request/request.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { type Paging, pagingOf, truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { ProfileRules } from '#ngsi-ld/values/profile.ts'

export interface ResourceRoutePorts extends ApiPorts {
  readonly clock: Clock
  readonly rules: ProfileRules
}

interface Reading {
  readonly context: Context
  readonly nowMs: number
}

/** The broker's operations on documents of one kind; every promise settles when the change is on disk. */
interface Store<One, View> {
  create(one: One): Promise<void>
  get(id: string): View | undefined
  patch(id: string, change: (before: One) => One): Promise<void>
  delete(id: string): Promise<void>
}

/** A document, and a warning about how its names were resolved. */
export interface Resolved<One> {
  readonly one: One
  readonly warning?: string | undefined
}

export interface ResourceKind<One, View> {
  readonly path: string
  /** Name of the kind in messages. */
  readonly noun: string
  /** Prefix of generated ids. */
  readonly idPrefix: string
  readonly storeOf: (broker: TenantBroker) => Store<One, View>
  /** A page of the list. */
  readonly page: (
    request: ApiRequest,
    paging: Paging,
    c: HttpContext,
  ) => { readonly views: readonly View[]; readonly count: number }
  /** List parameters beside options, local and paging. */
  readonly selectors?: readonly string[]
  /** Valid options of a list; by default sysAttrs. */
  readonly listOptions?: readonly string[]
  readonly parse: (body: Json, options: Reading & { readonly newId: () => string }) => One
  readonly patch: (before: One, body: Json, options: Reading) => One
  readonly idOf: (one: One) => string
  readonly render: (view: View, options: Reading & { readonly sysAttrs: boolean }) => object
  /** Resolves the platform's short names in a body without a context; without it, none are resolved. */
  readonly resolve?: (request: BodyRequest, read: (context: Context) => One) => Resolved<One>
  /** Checks a body beyond its syntax, before the tenant is entered. */
  readonly check?: (request: BodyRequest, c: HttpContext) => Promise<void>
  /** Whether a document is visible to the client; by default all are. */
  readonly isFor?: (c: HttpContext, view: View | undefined) => boolean
  /** Refuses documents, new or changed, that the client may not have. */
  readonly allow?: (c: HttpContext, one: One) => void
  /** Called when a change is on disk. */
  readonly changed?: (tenant: string, id: string) => void
  /** The effect of local=true on writes; without it, writes refuse the parameter. */
  readonly limited?: {
    /** The body of a new document without context sources. */
    readonly creation: (body: Json) => Json
    /** Refuses a local change of a document that involves sources. */
    readonly allow: (broker: TenantBroker, view: View) => void
  }
  /** Completes a new document in its tenant. */
  readonly complete?: (
    c: HttpContext,
    one: One,
    of: { request: BodyRequest; broker: TenantBroker },
  ) => Promise<One>
}

const retrieveParameters = new Set(['options', 'local'])

function createRoutes<One, View>(ports: ResourceRoutePorts, kind: ResourceKind<One, View>) {
  const { requests, answers, clock, rules } = ports
  const { path, noun, storeOf } = kind
  const listParameters = new Set([
    ...retrieveParameters,
    'limit',
    'offset',
    'count',
    ...(kind.selectors ?? []),
  ])

  const writeParameters = new Set(kind.limited === undefined ? [] : ['local'])
  const isLimited = ({ parameters }: RequestHead): boolean => truthOf(parameters, 'local') === true

  const resolved = (request: BodyRequest, read: (context: Context) => One): Resolved<One> =>
    kind.resolve?.(request, read) ?? { one: read(request.context) }

  const textsOf = (
    request: ApiRequest,
    views: readonly View[],
    options: readonly string[] = ['sysAttrs'],
  ): { texts: readonly string[]; context: Context } => {
    const context = answers.contextFor(request)
    const sysAttrs = optionsOf(request.parameters, options).has('sysAttrs')
    const nowMs = clock.now()
    return {
      texts: textsWithin(views, (view) => JSON.stringify(kind.render(view, { context, nowMs, sysAttrs }))),
      context,
    }
  }

  /** @throws http.body-too-large */
  const checkSize = (body: Json): void => {
    const most = limits.subscriptionBytesMax.value
    if (JSON.stringify(body).length <= most) return
    throw new GatewayError('http.body-too-large', `a ${noun} has at most ${most} bytes`)
  }

  /** Reports documents invisible to the client as missing. @throws ngsi-ld.not-found */
  const requireFor = (c: HttpContext, request: RequestHead, broker: TenantBroker): void => {
    const id = idOf(c)
    const view = storeOf(broker).get(id)
    if (kind.isFor?.(c, view) === false) throw notFound(`no ${noun} ${id}`)
    if (isLimited(request) && view !== undefined) kind.limited?.allow(broker, view)
  }

  return Object.freeze({
    async create(c: HttpContext): Promise<Response> {
      const request = await requests.body(c, { creates: true, known: writeParameters })
      checkSize(request.body)
      const body = isLimited(request) ? (kind.limited?.creation(request.body) ?? request.body) : request.body
      const newId = () => `${kind.idPrefix}${randomUUID()}`
      const { one, warning } = resolved(request, (context) =>
        kind.parse(body, { context, nowMs: clock.now(), newId }),
      )
      kind.allow?.(c, one)
      await kind.check?.(request, c)
      const broker = await request.enter()
      await storeOf(broker).create((await kind.complete?.(c, one, { request, broker })) ?? one)
      const id = kind.idOf(one)
      kind.changed?.(request.tenant, id)
      return answers.created(
        withWarning(request, warning),
        `${path}/${pathSegment(id)}`,
        rules.createAnswersId ? id : undefined,
      )
    },

    async list(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, listParameters)
      const paging = pagingOf(request.parameters)
      const { views, count } = kind.page(request, paging, c)
      const rendered = textsOf(request, views, kind.listOptions)
      const shown = rendered.texts.length
      return answers.list(request, rendered, {
        count: paging.count ? count : undefined,
        links: pageLinks(c.req.url, paging, { shown, more: paging.offset + shown < count }),
      })
    },

    async retrieve(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, retrieveParameters)
      const id = idOf(c)
      const view = storeOf(request.broker).get(id)
      if (view === undefined || kind.isFor?.(c, view) === false) throw notFound(`no ${noun} ${id}`)
      const { texts, context } = textsOf(request, [view])
      return answers.entity(request, texts[0]!, context)
    },

    async patch(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const request = await requests.body(c, { known: writeParameters })
      checkSize(request.body)
      await kind.check?.(request, c)
      const broker = await request.enter()
      requireFor(c, request, broker)
      let warning: string | undefined
      await storeOf(broker).patch(id, (before) => {
        const after = resolved(request, (context) =>
          kind.patch(before, request.body, { context, nowMs: clock.now() }),
        )
        kind.allow?.(c, after.one)
        warning = after.warning
        return after.one
      })
      kind.changed?.(request.tenant, id)
      return answers.noContent(withWarning(request, warning))
    },

    async remove(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, writeParameters)
      const id = idOf(c)
      requireFor(c, request, request.broker)
      await storeOf(request.broker).delete(id)
      kind.changed?.(request.tenant, id)
      return answers.noContent(request)
    },
  })
}

/** The routes of one kind by path and method. */
export function resourceTable<One, View>(ports: ResourceRoutePorts, kind: ResourceKind<One, View>) {
  const routes = createRoutes(ports, kind)
  return {
    [kind.path]: { GET: routes.list, POST: routes.create },
    [`${kind.path}/:id`]: { GET: routes.retrieve, PATCH: routes.patch, DELETE: routes.remove },
  }
}
