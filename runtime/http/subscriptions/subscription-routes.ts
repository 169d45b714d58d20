/**
 * Routes of subscriptions (GS CIM 009, 6.10 and 6.11). The @context for notifications must be available. A
 * context without an address is stored, since notifications refer to it in a Link header.
 */
import { limits } from '#base/limits/limits.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import type { SubscriptionView } from '#broker/subscriptions/subscription-requests.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { Json } from '#contract'
import type { SubscriptionForwarding } from '#federation/subscription-forwarding.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import { refuseLoop } from '#http/request/distributed-request.ts'
import { optionsOf } from '#http/request/negotiate.ts'
import { type BodyRequest, originOf, withAddress } from '#http/request/request.ts'
import { allowSubscription, belongsTo } from '#http/request/tunnel-guest.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { toIri } from '#ngsi-ld/context/core-context.ts'
import { isPlatformName, shortNamesIn } from '#ngsi-ld/context/platform-names.ts'
import { typeNamesOf } from '#ngsi-ld/query/entity-selector.ts'
import { truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { renderSubscription, type Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { parseSubscription, patchSubscription } from '#ngsi-ld/subscription/subscription-parse.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData, notSupported } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { warningLine } from '#ngsi-ld/values/warning-lines.ts'
import { type Resolved, type ResourceRoutePorts, resourceTable } from './resources.ts'

export const subscriptionsPath = '/ngsi-ld/v1/subscriptions'
/** Subscriptions of the gateway's own components are listed only on request: they notify nobody. */
const listOptions = ['sysAttrs', 'followers']

export interface SubscriptionRoutePorts extends ResourceRoutePorts {
  readonly contexts: Pick<Contexts, 'resolve'>
  readonly forwarding: Pick<SubscriptionForwarding, 'subscriptionChanged'>
  /** The pseudonym of this gateway in Via, per tenant. */
  readonly alias: (tenant: string) => string
  /**
   * The address at which context sources reach this gateway; without it, the address that the client used.
   */
  readonly publicUrl: string | undefined
}

/** The routes of subscriptions by path and method. */
export function createSubscriptionTable({
  contexts,
  forwarding,
  alias,
  publicUrl,
  ...ports
}: SubscriptionRoutePorts) {
  return resourceTable(ports, {
    path: subscriptionsPath,
    noun: 'subscription',
    listOptions,
    idPrefix: 'urn:ngsi-ld:Subscription:',
    storeOf: ({ subscriptions }) => subscriptions,
    page({ broker, parameters }, paging, c) {
      const { guest } = c.env
      const followers = optionsOf(parameters, listOptions).has('followers')
      if (guest === undefined) return broker.subscriptions.list({ ...paging, followers })
      const { views: all } = broker.subscriptions.list({
        ...paging,
        limit: limits.subscriptionsMax.value,
        offset: 0,
      })
      const views = all.filter(({ subscription }) => belongsTo(guest, subscription))
      return { views: views.slice(paging.offset, paging.offset + paging.limit), count: views.length }
    },
    isFor: ({ env: { guest } }, view) =>
      guest === undefined || (view !== undefined && belongsTo(guest, view.subscription)),
    allow({ env: { guest } }, subscription) {
      if (guest !== undefined) allowSubscription(guest, subscription)
    },
    parse: parseSubscription,
    resolve: withPlatformNames,
    patch: patchSubscription,
    idOf: ({ id }) => id,
    render: ({ subscription, stats }, options) =>
      renderSubscription(subscription, { ...options, statistics: stats }),
    limited: { creation: localOnly, allow: requireLocal },
    async check(request, c) {
      refuseLoop(c, alias(request.tenant))
      refuseShared(request)
      if (c.env.isWithin !== true && isOfComponent(request.body)) throw reservedMode()
      await checkContext(contexts, request)
    },
    async complete(c, subscription, of) {
      const via = headerOf(c, 'via')
      const origin = publicUrl?.replace(/\/+$/, '') ?? originOf(c)
      const tunnel = c.env.guest?.centre
      const asked = {
        origin,
        ...(via === undefined ? {} : { via }),
        ...(tunnel === undefined ? {} : { tunnel }),
      }
      return { ...(await withContextAddress(c, subscription, { ...of, isShown: true })), asked }
    },
    changed: forwarding.subscriptionChanged,
  })
}

/**
 * Resolves short names unknown to the tenant to the platform's names. A subscription to types outside the
 * platform keeps all its names in the default context, because words like `name` may be the client's own.
 */
function withPlatformNames(
  { context, isKnown }: BodyRequest,
  read: (context: Context) => Subscription,
): Resolved<Subscription> {
  const inQueries = context.forQueries?.(isKnown)
  const one = read(inQueries ?? context)
  if (inQueries === undefined) return { one }
  const types = one.entities?.flatMap((entity) =>
    entity.types === undefined ? [] : typeNamesOf(entity.types),
  )
  if (types !== undefined && types.length > 0 && !types.some(isPlatformName)) return { one: read(context) }
  const names = shortNamesIn(inQueries)
  if (names.length === 0) return { one }
  const meanings = names.map(([short, name]) => `${short} as ${toIri(name)}`).join(', ')
  const text = `the subscription reads ${meanings}: send a Link header with the @context if other names are meant`
  return { one, warning: warningLine(199, '-', text) }
}

/** A subscription created with local=true stays local. */
const localOnly = (body: Json): Json => (isObject(body) ? { ...body, localOnly: true } : body)

/** @throws ngsi-ld.bad-request-data if local=true contradicts the body's localOnly. */
function refuseShared({ parameters, body }: BodyRequest): void {
  if (truthOf(parameters, 'local') !== true || !isObject(body)) return
  const { localOnly = true } = body
  if (localOnly !== true) throw badRequestData('contradicts local=true', 'localOnly')
}

/**
 * Refuses local=true for a subscription that sources take part in, since they would continue to notify.
 * @throws ngsi-ld.not-supported
 */
function requireLocal({ registrations }: TenantBroker, { subscription }: SubscriptionView): void {
  if (subscription.localOnly === true || registrations.isEmpty()) return
  throw notSupported('local=true requires a subscription with localOnly while context sources are registered')
}

const reservedMode = (): Error =>
  badRequestData(
    'follower and component are reserved for components of this gateway; omit it to be notified',
    'notification.endpoint.notifierInfo selvedge:mode',
  )

/** Whether a body, new or changed, requests a mode that is reserved for the gateway's components. */
function isOfComponent(body: Json | undefined): boolean {
  const notification = isObject(body) ? body['notification'] : undefined
  const endpoint = isObject(notification) ? notification['endpoint'] : undefined
  const pairs = isObject(endpoint) ? endpoint['notifierInfo'] : undefined
  if (!Array.isArray(pairs)) return false
  return pairs.some(
    (pair) =>
      isObject(pair) &&
      pair['key'] === 'selvedge:mode' &&
      (pair['value'] === 'follower' || pair['value'] === 'component'),
  )
}

/**
 * @throws ngsi-ld.context-not-available, ngsi-ld.bad-request-data if the context for notifications is
 * unavailable.
 */
export async function checkContext(
  contexts: SubscriptionRoutePorts['contexts'],
  { body, tenant }: BodyRequest,
): Promise<void> {
  const url = isObject(body) ? body['jsonldContext'] : undefined
  if (typeof url === 'string' && URL.canParse(url)) await contexts.resolve(url, tenant)
}

/**
 * Adds the address of the context for notifications, if it differs from the request's or the subscription is
 * one to entities (GS CIM 009, 5.8.1.4).
 */
export async function withContextAddress(
  c: HttpContext,
  subscription: Subscription,
  { request, broker, isShown = false }: { request: BodyRequest; broker: TenantBroker; isShown?: boolean },
): Promise<Subscription> {
  const { address } = await withAddress(c, broker, request.context)
  const isStated = isShown || address !== request.context.address
  return address === undefined || !isStated ? subscription : { jsonldContext: address, ...subscription }
}
