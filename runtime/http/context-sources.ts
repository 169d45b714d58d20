/**
 * Routes of context source registrations and of subscriptions to them (GS CIM 009, 6.8, 6.9, 6.12 and 6.13). What
 * they may say is decided where they are parsed, what they do by the broker.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '#base/clock.ts'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { SourceSubscriptionView } from '#broker/types.ts'
import type { Json } from '#contract'
import { parseGeoQuery } from '#ngsi-ld/geo.ts'
import { checkName, checkUri } from '#ngsi-ld/name.ts'
import { compilePattern } from '#ngsi-ld/pattern.ts'
import { badRequestData, notFound } from '#ngsi-ld/problem.ts'
import type { ProfileRules } from '#ngsi-ld/profile.ts'
import { compileQuery } from '#ngsi-ld/query-match.ts'
import { parseQuery } from '#ngsi-ld/query-parse.ts'
import { type RegistrationView, renderRegistration } from '#ngsi-ld/registration.ts'
import { attributesOf, type Discovery } from '#ngsi-ld/registration-match.ts'
import { parseRegistration, patchRegistration } from '#ngsi-ld/registration-parse.ts'
import { parseScopeQuery } from '#ngsi-ld/scope-query.ts'
import { parseTypeSelection } from '#ngsi-ld/selection.ts'
import {
  parseFilter,
  parseSourceSubscription,
  parseTime,
  patchSourceSubscription,
  renderSourceSubscription,
} from '#ngsi-ld/source-subscription.ts'
import type { Answers } from './answer.ts'
import type { Ask, Asks } from './ask.ts'
import type { HttpContext } from './body.ts'
import { listOf, optionsOf, pagingOf } from './negotiate.ts'
import { pageLinks } from './paging.ts'
import { idOf, pathSegment } from './path.ts'

const registrationsPath = '/ngsi-ld/v1/csourceRegistrations'
const sourceSubscriptionsPath = '/ngsi-ld/v1/csourceSubscriptions'

export interface ContextSourceRoutePorts {
  readonly asks: Asks
  readonly answers: Answers
  readonly clock: Clock
  readonly rules: ProfileRules
}

const retrieveParameters = new Set(['options', 'local'])
const pageParameters = new Set([...retrieveParameters, 'limit', 'offset', 'count'])
const temporalParameters = ['timerel', 'timeAt', 'endTimeAt', 'timeproperty'] as const
const discoveryParameters = new Set([
  ...pageParameters,
  ...temporalParameters,
  'id',
  'idPattern',
  'type',
  'attrs',
  'q',
  'csf',
  'scopeQ',
  'georel',
  'geometry',
  'coordinates',
  'geoproperty',
])

/** All routes of context sources by path and method. */
export function createContextSourceTable(ports: ContextSourceRoutePorts) {
  const registrations = createRegistrationRoutes(ports)
  const subscriptions = createSourceSubscriptionRoutes(ports)
  return {
    [registrationsPath]: { GET: registrations.query, POST: registrations.create },
    [`${registrationsPath}/:id`]: {
      GET: registrations.retrieve,
      PATCH: registrations.patch,
      DELETE: registrations.remove,
    },
    [sourceSubscriptionsPath]: { GET: subscriptions.list, POST: subscriptions.create },
    [`${sourceSubscriptionsPath}/:id`]: {
      GET: subscriptions.retrieve,
      PATCH: subscriptions.patch,
      DELETE: subscriptions.remove,
    },
  }
}

function createRegistrationRoutes({ asks, answers, clock, rules }: ContextSourceRoutePorts) {
  const textsOf = (ask: Ask, views: readonly RegistrationView[]) => {
    const context = answers.contextFor(ask)
    const sysAttrs = optionsOf(ask.parameters, ['sysAttrs']).has('sysAttrs')
    return {
      texts: views.map((view) => JSON.stringify(renderRegistration(view, { context, sysAttrs }))),
      context,
    }
  }

  return Object.freeze({
    async create(c: HttpContext): Promise<Response> {
      const ask = await asks.body(c, { creates: true })
      checkSize(ask.body)
      const newId = () => `urn:ngsi-ld:ContextSourceRegistration:${randomUUID()}`
      const registration = parseRegistration(ask.body, { context: ask.context, nowMs: clock.now(), newId })
      await (await ask.enter()).registrations.create(registration)
      const location = `${registrationsPath}/${pathSegment(registration.id)}`
      return answers.created(ask, location, rules.createAnswersId ? registration.id : undefined)
    },

    async query(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, discoveryParameters)
      const paging = pagingOf(ask.parameters)
      const { views, count } = ask.broker.registrations.discover(discoveryOf(ask), paging)
      const links = pageLinks(c.req.url, paging, paging.offset + views.length < count)
      return answers.list(ask, textsOf(ask, views), { count: paging.count ? count : undefined, links })
    },

    async retrieve(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, retrieveParameters)
      const id = idOf(c)
      const view = ask.broker.registrations.get(id)
      if (view === undefined) throw notFound(`no registration ${id}`)
      const { texts, context } = textsOf(ask, [view])
      return answers.entity(ask, texts[0]!, context)
    },

    async patch(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const ask = await asks.body(c)
      checkSize(ask.body)
      const options = { context: ask.context, nowMs: clock.now() }
      const { registrations } = await ask.enter()
      await registrations.patch(id, (before) => patchRegistration(before, ask.body, options))
      return answers.noContent(ask)
    },

    async remove(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, new Set())
      await ask.broker.registrations.delete(idOf(c))
      return answers.noContent(ask)
    },
  })
}

function createSourceSubscriptionRoutes({ asks, answers, clock, rules }: ContextSourceRoutePorts) {
  const textsOf = (ask: Ask, views: readonly SourceSubscriptionView[]) => {
    const context = answers.contextFor(ask)
    const sysAttrs = optionsOf(ask.parameters, ['sysAttrs']).has('sysAttrs')
    const nowMs = clock.now()
    const texts = views.map(({ one, statistics }) =>
      JSON.stringify(renderSourceSubscription(one, { context, nowMs, statistics, sysAttrs })),
    )
    return { texts, context }
  }

  return Object.freeze({
    async create(c: HttpContext): Promise<Response> {
      const ask = await asks.body(c, { creates: true })
      checkSize(ask.body)
      const newId = () => `urn:ngsi-ld:Subscription:${randomUUID()}`
      const one = parseSourceSubscription(ask.body, { context: ask.context, nowMs: clock.now(), newId })
      await (await ask.enter()).sourceSubscriptions.create(one)
      const { id } = one.subscription
      const location = `${sourceSubscriptionsPath}/${pathSegment(id)}`
      return answers.created(ask, location, rules.createAnswersId ? id : undefined)
    },

    async list(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, pageParameters)
      const paging = pagingOf(ask.parameters)
      const { views, count } = ask.broker.sourceSubscriptions.list(paging)
      const links = pageLinks(c.req.url, paging, paging.offset + views.length < count)
      return answers.list(ask, textsOf(ask, views), { count: paging.count ? count : undefined, links })
    },

    async retrieve(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, retrieveParameters)
      const id = idOf(c)
      const view = ask.broker.sourceSubscriptions.get(id)
      if (view === undefined) throw notFound(`no subscription ${id}`)
      const { texts, context } = textsOf(ask, [view])
      return answers.entity(ask, texts[0]!, context)
    },

    async patch(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const ask = await asks.body(c)
      checkSize(ask.body)
      const options = { context: ask.context, nowMs: clock.now() }
      const { sourceSubscriptions } = await ask.enter()
      await sourceSubscriptions.patch(id, (before) => patchSourceSubscription(before, ask.body, options))
      return answers.noContent(ask)
    },

    async remove(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, new Set())
      await ask.broker.sourceSubscriptions.delete(idOf(c))
      return answers.noContent(ask)
    },
  })
}

/**
 * What a request wants to find (5.10.2).
 * @throws ngsi-ld.bad-request-data when it would find everything, or when a part of it is malformed.
 */
function discoveryOf({ parameters, context }: Ask): Discovery {
  const given = (name: string): string | undefined => parameters.get(name)
  const [type, q, csf, idPattern, scopeQ] = ['type', 'q', 'csf', 'idPattern', 'scopeQ'].map(given)
  const ids = listOf(parameters, 'id')?.map((id) => checkUri(id, 'id'))
  if (idPattern !== undefined) compilePattern(idPattern, 'idPattern')
  const tree = q === undefined ? undefined : parseQuery(q, context.expand)
  if (tree !== undefined) compileQuery(tree)
  const geo = parseGeoQuery(
    {
      georel: given('georel'),
      geometry: given('geometry'),
      coordinates: given('coordinates'),
      geoproperty: given('geoproperty'),
    },
    context.expand,
  )
  const named = Object.fromEntries(temporalParameters.map((name) => [name, given(name)]))
  const isTemporal = temporalParameters.some((name) => given(name) !== undefined)
  const time = isTemporal ? parseTime(named) : undefined
  const attrs =
    listOf(parameters, 'attrs')?.map((term) => checkName(context.expand(term), 'attrs')) ??
    (tree === undefined ? undefined : attributesOf(tree))
  if (type === undefined && attrs === undefined && geo === undefined)
    throw badRequestData('one of type, attrs, q or georel is needed')
  const types = type === undefined ? undefined : parseTypeSelection(type, context.expand)
  return {
    interests: [{ ids, idPattern, types, attrs }],
    geo,
    time,
    scope: scopeQ === undefined ? undefined : parseScopeQuery(scopeQ),
    csf: csf === undefined ? undefined : parseFilter(csf, context.expand),
  }
}

/** @throws http.body-too-large */
function checkSize(body: Json): void {
  const most = limits.subscriptionBytesMax.value
  if (JSON.stringify(body).length <= most) return
  throw new GatewayError('http.body-too-large', `a registration or subscription has at most ${most} bytes`)
}
