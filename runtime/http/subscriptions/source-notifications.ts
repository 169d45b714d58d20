/**
 * The route where context sources deliver notifications for subscriptions forwarded to them (GS CIM 009,
 * 4.3.6 and 5.8.6). The last path segment is a secret of that source. Attributes that the source claims are
 * passed to the subscriber. The request is acknowledged when the resulting delivery is on disk.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import type { ReportedEntity } from '#broker/subscriptions/subscription-requests.ts'
import type { Broker } from '#broker/tenant/tenant-broker.ts'
import type { Json } from '#contract'
import { sourceNotificationsPath } from '#federation/subscription-forwarding.ts'
import type { Distribution } from '#http/distribution/distributed-routes.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import { linkedContext } from '#http/request/negotiate.ts'
import { attributeNames } from '#ngsi-ld/entity/entity.ts'
import { mergeCopies } from '#ngsi-ld/federation/distribution.ts'
import { parseNotifiedEntity } from '#ngsi-ld/federation/forwarded-subscription.ts'
import { modeOf, type Registration } from '#ngsi-ld/federation/registration.ts'
import { claimOf } from '#ngsi-ld/federation/registration-match.ts'
import { isObject, type JsonObject, listOf } from '#ngsi-ld/values/json.ts'
import { badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export interface SourceNotificationPorts extends ApiPorts {
  readonly broker: Broker
  readonly contexts: Contexts
  readonly clock: Clock
  readonly distribution: Pick<Distribution, 'partsAtOtherSources' | 'splits'>
}

const parameters = new Set(['tenant'])

/** The origin of a notification. */
interface From {
  readonly tenant: string
  readonly link: string | undefined
  readonly registration: Registration
  /** Conditions are evaluated on the entity merged from all its parts. */
  readonly isSplit: boolean
}

export function createSourceNotificationTable(ports: SourceNotificationPorts) {
  const { requests, answers, broker, contexts, clock } = ports

  async function entitiesIn(
    item: Json,
    { tenant, link, registration, isSplit }: From,
  ): Promise<ReportedEntity[]> {
    if (!isObject(item)) throw badRequestData('must be a list of entities', 'data')
    const given = item['@context'] ?? link
    const context = given === undefined ? contexts.core : await contexts.resolve(given, tenant)
    const notified = parseNotifiedEntity(item, context, clock.now())
    const { id, type } = notified.entity
    const claim = claimOf(registration, id, listOf<string>(type))
    if (claim === undefined) return []
    if (notified.isDeleted === true) return [{ report: notified }]
    const mine = attributeNames(notified.entity).filter((name) => claim === 'all' || claim.has(name))
    const { scope, expiresAt } = notified.entity
    const entity = {
      id,
      type,
      ...(scope === undefined ? {} : { scope }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
      ...Object.fromEntries(mine.map((name) => [name, notified.entity[name]])),
    }
    const copy = { mode: modeOf(registration), claim, entity, times: notified.times }
    const own = broker.tenant(tenant)?.retrieve(id)
    const local =
      own === undefined
        ? []
        : [{ mode: 'local' as const, claim: 'all' as const, entity: own.entity(), times: own.times() }]
    const others = isSplit ? await ports.distribution.partsAtOtherSources(tenant, id, registration.id) : []
    const combined = mergeCopies([...local, copy, ...others])
    // For an entity split over several brokers, the notification contains all its parts (5.8.6).
    return [{ report: isSplit ? { ...notified, ...combined } : { ...notified, entity }, combined }]
  }

  return {
    [`${sourceNotificationsPath}/:token`]: {
      async POST(c: HttpContext): Promise<Response> {
        // The path is open without the gateway's token, so the body is read only if the secret in the path is
        // valid.
        const token = c.req.param('token') ?? ''
        const isKnown =
          broker.tenant(c.req.query('tenant') ?? '')?.forwardedSubscriptions.byToken(token) !== undefined
        if (!isKnown) throw notFound('no forwarded subscription with this token')
        const request = await requests.document(c, { known: parameters, chunks: true })
        const tenant = request.parameters.get('tenant') ?? ''
        const at = broker.tenant(tenant)
        const passed = at?.forwardedSubscriptions.byToken(token)
        if (at === undefined || passed === undefined)
          throw notFound('no forwarded subscription with this token')
        if (!isObject(request.body)) throw badRequestData('must be a notification', 'body')
        const { data } = request.body satisfies JsonObject
        const { subscription } = at.subscriptions.get(passed.subscription) ?? {}
        const from = {
          tenant,
          isSplit: (subscription?.splitEntities ?? ports.distribution.splits) === true,
          link: linkedContext(headerOf(c, 'link')),
          registration: passed.registration,
        }
        const items = listOf<Json>(data ?? [])
        const all: ReportedEntity[] = []
        // Limited parallelism, since each item may query sources for the rest of an entity.
        for (let first = 0; first < items.length; first += limits.sourceSocketsMax.value) {
          const some = items.slice(first, first + limits.sourceSocketsMax.value)
          all.push(...(await Promise.all(some.map((item) => entitiesIn(item, from)))).flat())
        }
        if (passed.state !== 'leaving') await at.subscriptions.report(passed.subscription, all)
        return answers.noContent(request)
      },
    },
  }
}
