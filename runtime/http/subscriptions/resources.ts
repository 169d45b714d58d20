/**
 * Routes of documents that are created, listed, shown, changed and deleted whole: subscriptions, registrations of
 * context sources, subscriptions to these. What such a document may say is decided where it is parsed, what it does
 * by the broker; what they have in common over HTTP is here, once.
 */
import { randomUUID } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { Json } from '#contract'
import type { HttpContext } from '#http/request/body.ts'
import { optionsOf, type Paging, pagingOf, truthOf } from '#http/request/negotiate.ts'
import { pageLinks, textsWithin } from '#http/request/paging.ts'
import { idOf, pathSegment } from '#http/request/path-ids.ts'
import { type Ask, type AskHead, type Asks, type BodyAsk, withWarning } from '#http/request/request.ts'
import type { Answers } from '#http/request/response.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { ProfileRules } from '#ngsi-ld/values/profile.ts'

export interface ResourceRoutePorts {
  readonly asks: Asks
  readonly answers: Answers
  readonly clock: Clock
  readonly rules: ProfileRules
}

interface Reading {
  readonly context: Context
  readonly nowMs: number
}

/** The use-cases on documents of a kind; every promise settles when on disk. */
interface Store<One, View> {
  create(one: One): Promise<void>
  get(id: string): View | undefined
  patch(id: string, change: (before: One) => One): Promise<void>
  delete(id: string): Promise<void>
}

/** A document, and what the client should know about how its names were read. */
export interface Resolved<One> {
  readonly one: One
  readonly warning?: string | undefined
}

export interface ResourceKind<One, View> {
  readonly path: string
  /** For people. */
  readonly noun: string
  /** What ids that we give begin with. */
  readonly idPrefix: string
  readonly storeOf: (broker: TenantBroker) => Store<One, View>
  /** One page of those that are asked for. */
  readonly page: (
    ask: Ask,
    paging: Paging,
    c: HttpContext,
  ) => { readonly views: readonly View[]; readonly count: number }
  /** What a list may be asked for beside options, local and paging. */
  readonly selectors?: readonly string[]
  /** What the options of a list may be; left out, sysAttrs. */
  readonly listOptions?: readonly string[]
  readonly parse: (body: Json, options: Reading & { readonly newId: () => string }) => One
  readonly patch: (before: One, body: Json, options: Reading) => One
  readonly idOf: (one: One) => string
  readonly render: (view: View, options: Reading & { readonly sysAttrs: boolean }) => object
  /** Reads a body with short names of the platform where it names no context; left out, none resolve. */
  readonly resolve?: (ask: BodyAsk, read: (context: Context) => One) => Resolved<One>
  /** Looks at a body beyond what can be parsed, before the tenant is entered. */
  readonly check?: (ask: BodyAsk, c: HttpContext) => Promise<void>
  /** Whether one is there for whoever asks; left out, all are for all. */
  readonly isFor?: (c: HttpContext, view: View | undefined) => boolean
  /** Refuses what whoever asks may not have, new or changed. */
  readonly allow?: (c: HttpContext, one: One) => void
  /** Called when a change of one is on disk. */
  readonly changed?: (tenant: string, id: string) => void
  /** What local=true means to writes; left out, they take no such parameter. */
  readonly limited?: {
    /** The body of a new one that sources are to have no part in. */
    readonly creation: (body: Json) => Json
    /** Refuses to change here alone what sources have a part in. */
    readonly allow: (broker: TenantBroker, view: View) => void
  }
  /** What a new one is completed with in its tenant. */
  readonly complete?: (c: HttpContext, one: One, of: { ask: BodyAsk; broker: TenantBroker }) => Promise<One>
}

const retrieveParameters = new Set(['options', 'local'])

function createRoutes<One, View>(ports: ResourceRoutePorts, kind: ResourceKind<One, View>) {
  const { asks, answers, clock, rules } = ports
  const { path, noun, storeOf } = kind
  const listParameters = new Set([
    ...retrieveParameters,
    'limit',
    'offset',
    'count',
    ...(kind.selectors ?? []),
  ])

  const writeParameters = new Set(kind.limited === undefined ? [] : ['local'])
  const isLimited = ({ parameters }: AskHead): boolean => truthOf(parameters, 'local') === true

  const resolved = (ask: BodyAsk, read: (context: Context) => One): Resolved<One> =>
    kind.resolve?.(ask, read) ?? { one: read(ask.context) }

  const textsOf = (
    ask: Ask,
    views: readonly View[],
    options: readonly string[] = ['sysAttrs'],
  ): { texts: readonly string[]; context: Context } => {
    const context = answers.contextFor(ask)
    const sysAttrs = optionsOf(ask.parameters, options).has('sysAttrs')
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

  /** What is not there for whoever asks is said not to be there at all. @throws ngsi-ld.not-found */
  const requireFor = (c: HttpContext, ask: AskHead, broker: TenantBroker): void => {
    const id = idOf(c)
    const view = storeOf(broker).get(id)
    if (kind.isFor?.(c, view) === false) throw notFound(`no ${noun} ${id}`)
    if (isLimited(ask) && view !== undefined) kind.limited?.allow(broker, view)
  }

  return Object.freeze({
    async create(c: HttpContext): Promise<Response> {
      const ask = await asks.body(c, { creates: true, known: writeParameters })
      checkSize(ask.body)
      const body = isLimited(ask) ? (kind.limited?.creation(ask.body) ?? ask.body) : ask.body
      const newId = () => `${kind.idPrefix}${randomUUID()}`
      const { one, warning } = resolved(ask, (context) =>
        kind.parse(body, { context, nowMs: clock.now(), newId }),
      )
      kind.allow?.(c, one)
      await kind.check?.(ask, c)
      const broker = await ask.enter()
      await storeOf(broker).create((await kind.complete?.(c, one, { ask, broker })) ?? one)
      const id = kind.idOf(one)
      kind.changed?.(ask.tenant, id)
      return answers.created(
        withWarning(ask, warning),
        `${path}/${pathSegment(id)}`,
        rules.createAnswersId ? id : undefined,
      )
    },

    async list(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, listParameters)
      const paging = pagingOf(ask.parameters)
      const { views, count } = kind.page(ask, paging, c)
      const rendered = textsOf(ask, views, kind.listOptions)
      const shown = rendered.texts.length
      return answers.list(ask, rendered, {
        count: paging.count ? count : undefined,
        links: pageLinks(c.req.url, paging, { shown, more: paging.offset + shown < count }),
      })
    },

    async retrieve(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, retrieveParameters)
      const id = idOf(c)
      const view = storeOf(ask.broker).get(id)
      if (view === undefined || kind.isFor?.(c, view) === false) throw notFound(`no ${noun} ${id}`)
      const { texts, context } = textsOf(ask, [view])
      return answers.entity(ask, texts[0]!, context)
    },

    async patch(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const ask = await asks.body(c, { known: writeParameters })
      checkSize(ask.body)
      await kind.check?.(ask, c)
      const broker = await ask.enter()
      requireFor(c, ask, broker)
      let warning: string | undefined
      await storeOf(broker).patch(id, (before) => {
        const after = resolved(ask, (context) =>
          kind.patch(before, ask.body, { context, nowMs: clock.now() }),
        )
        kind.allow?.(c, after.one)
        warning = after.warning
        return after.one
      })
      kind.changed?.(ask.tenant, id)
      return answers.noContent(withWarning(ask, warning))
    },

    async remove(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, writeParameters)
      const id = idOf(c)
      requireFor(c, ask, ask.broker)
      await storeOf(ask.broker).delete(id)
      kind.changed?.(ask.tenant, id)
      return answers.noContent(ask)
    },
  })
}

/** The routes of a kind by path and method. */
export function resourceTable<One, View>(ports: ResourceRoutePorts, kind: ResourceKind<One, View>) {
  const routes = createRoutes(ports, kind)
  return {
    [kind.path]: { GET: routes.list, POST: routes.create },
    [`${kind.path}/:id`]: { GET: routes.retrieve, PATCH: routes.patch, DELETE: routes.remove },
  }
}
