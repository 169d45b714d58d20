/**
 * Routes of subscriptions (GS CIM 009, 6.10 and 6.11). What a subscription may say is decided where it is parsed,
 * what it does by the broker.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '#base/clock.ts'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Contexts } from '#broker/contexts.ts'
import type { SubscriptionView } from '#broker/types.ts'
import type { Json } from '#contract'
import { isObject } from '#ngsi-ld/json.ts'
import { notFound } from '#ngsi-ld/problem.ts'
import type { ProfileRules } from '#ngsi-ld/profile.ts'
import { renderSubscription } from '#ngsi-ld/subscription.ts'
import { parseSubscription, patchSubscription } from '#ngsi-ld/subscription-parse.ts'
import type { Answers } from './answer.ts'
import { type Ask, type Asks, nameable } from './ask.ts'
import type { HttpContext } from './body.ts'
import { optionsOf, pagingOf } from './negotiate.ts'
import { pageLinks } from './paging.ts'
import { idOf, pathSegment } from './path.ts'

export const subscriptionsPath = '/ngsi-ld/v1/subscriptions'

export interface SubscriptionRoutePorts {
  readonly asks: Asks
  readonly answers: Answers
  readonly contexts: Pick<Contexts, 'resolve'>
  readonly clock: Clock
  readonly rules: ProfileRules
}

const retrieveParameters = new Set(['options', 'local'])
const listParameters = new Set([...retrieveParameters, 'limit', 'offset', 'count'])

export function createSubscriptionRoutes({ asks, answers, contexts, clock, rules }: SubscriptionRoutePorts) {
  const textsOf = (ask: Ask, views: readonly SubscriptionView[]) => {
    const context = answers.contextFor(ask)
    const sysAttrs = optionsOf(ask.parameters, ['sysAttrs']).has('sysAttrs')
    const nowMs = clock.now()
    const texts = views.map(({ subscription, stats }) =>
      JSON.stringify(renderSubscription(subscription, { context, nowMs, statistics: stats, sysAttrs })),
    )
    return { texts, context }
  }

  /** Notifications could not be written in a @context that cannot be had. */
  async function checkContext(url: Json | undefined, tenant: string): Promise<void> {
    if (typeof url === 'string' && URL.canParse(url)) await contexts.resolve(url, tenant)
  }

  return Object.freeze({
    async create(c: HttpContext): Promise<Response> {
      const ask = await asks.body(c, { creates: true })
      checkSize(ask.body)
      const newId = () => `urn:ngsi-ld:Subscription:${randomUUID()}`
      const subscription = parseSubscription(ask.body, { context: ask.context, nowMs: clock.now(), newId })
      await checkContext(subscription.jsonldContext, ask.tenant)
      const broker = await ask.enter()
      // Notifications name their context in a Link header.
      const { address } = await nameable(c, broker, ask.context)
      const isNamed = address === undefined || address === ask.context.address
      const whole = isNamed ? subscription : { jsonldContext: address, ...subscription }
      await broker.subscriptions.create(whole)
      const location = `${subscriptionsPath}/${pathSegment(subscription.id)}`
      return answers.created(ask, location, rules.createAnswersId ? subscription.id : undefined)
    },

    async list(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, listParameters)
      const paging = pagingOf(ask.parameters)
      const { views, count } = ask.broker.subscriptions.list(paging)
      const links = pageLinks(c.req.url, paging, paging.offset + views.length < count)
      return answers.list(ask, textsOf(ask, views), { count: paging.count ? count : undefined, links })
    },

    async retrieve(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, retrieveParameters)
      const id = idOf(c)
      const view = ask.broker.subscriptions.get(id)
      if (view === undefined) throw notFound(`no subscription ${id}`)
      const { texts, context } = textsOf(ask, [view])
      return answers.entity(ask, texts[0]!, context)
    },

    async patch(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const ask = await asks.body(c)
      checkSize(ask.body)
      const options = { context: ask.context, nowMs: clock.now() }
      await checkContext(isObject(ask.body) ? ask.body['jsonldContext'] : undefined, ask.tenant)
      const { subscriptions } = await ask.enter()
      await subscriptions.patch(id, (before) => patchSubscription(before, ask.body, options))
      return answers.noContent(ask)
    },

    async remove(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, new Set())
      await ask.broker.subscriptions.delete(idOf(c))
      return answers.noContent(ask)
    },
  })
}

/** @throws http.body-too-large */
function checkSize(body: Json): void {
  const most = limits.subscriptionBytesMax.value
  if (JSON.stringify(body).length <= most) return
  throw new GatewayError('http.body-too-large', `a subscription has at most ${most} bytes`)
}
