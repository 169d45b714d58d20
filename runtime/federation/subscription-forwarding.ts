/**
 * Distributed subscriptions (GS CIM 009, 4.3.6 and 5.8). A subscription is created at every source that
 * claims relevant data and offers the operation. It is replaced there when the subscription or the
 * registration changes, and deleted when it is no longer needed. Each step is on disk before it is attempted,
 * so an unreachable source receives it later. The new subscription exists before the old one is deleted, so
 * no notification is missed; some may arrive twice.
 */

import { hash, randomUUID } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { toGatewayError } from '#base/register/errors.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import type {
  ForwardedState,
  ForwardedSubscription,
  ForwardingPair,
} from '#broker/sources/forwarded-subscriptions.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import { type Context, coreContext } from '#ngsi-ld/context/context.ts'
import { forwardedSubscription } from '#ngsi-ld/federation/forwarded-subscription.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { pseudonymsOf } from '#ngsi-ld/federation/via.ts'
import { renderSubscription, type Subscription } from '#ngsi-ld/subscription/subscription.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { isTunnelled, tunnelUri } from '#ngsi-ld/values/tunnel-uri.ts'
import type { SourceAnswer, Sources } from './sources.ts'

export interface SubscriptionForwardingPorts extends ClockAndLog {
  readonly sources: Sources
  readonly contexts: Pick<Contexts, 'resolve'>
  readonly tenant: (name: string) => TenantBroker | undefined
  /** The pseudonym of this gateway in Via, per tenant. */
  readonly alias: (tenant: string) => string
  /** Value of splitEntities for subscriptions that do not set it. */
  readonly splits?: boolean | undefined
}

/** Path at which sources deliver notifications. */
export const sourceNotificationsPath = '/selvedge/v1/source-notifications'
const subscriptionsPath = '/ngsi-ld/v1/subscriptions'

export type SubscriptionForwarding = ReturnType<typeof createForwarding>

export function createForwarding(ports: SubscriptionForwardingPorts) {
  const { clock, log } = ports
  const known = new Set<string>()
  /** Ids with a request in flight. */
  const busy = new Set<string>()
  /** Ids waiting for a free slot, with their tenant. */
  const waiting = new Map<string, string>()
  let queue: Promise<void> = Promise.resolve()
  let isClosed = false
  let sending = 0
  const timer = setInterval(() => void sweep(), limits.forwardingRetryMs.value).unref()

  /** Runs work in order; nobody waits for it. */
  function enqueue(tenant: string, work: (broker: TenantBroker) => Promise<void>): void {
    known.add(tenant)
    queue = queue.then(async () => {
      const broker = ports.tenant(tenant)
      if (isClosed || broker === undefined) return
      await work(broker).catch((error: unknown) => report(tenant, error))
    })
  }
  function report(tenant: string, error: unknown): void {
    log.warn('subscription.not-passed-on', { tenant, code: toGatewayError(error).code, error })
  }

  function wantedOf(subscription: Subscription | undefined, registration: Registration | undefined) {
    if (subscription === undefined || registration === undefined) return undefined
    const { contextSourceAlias } = registration
    const via = pseudonymsOf(subscription.asked?.via)
    if (contextSourceAlias !== undefined && via.includes(contextSourceAlias)) return undefined
    const { splitEntities = ports.splits } = subscription
    const split = splitEntities === undefined ? {} : { splitEntities }
    return forwardedSubscription({ ...subscription, ...split }, registration, clock.now())
  }

  /** Reconciles the subscriptions at a source with those needed now. */
  async function settle(tenant: string, broker: TenantBroker, pair: ForwardingPair): Promise<void> {
    const subscription = broker.subscriptions.get(pair.subscription)?.subscription
    const registration = broker.registrations.get(pair.registration)?.registration
    const wanted = wantedOf(subscription, registration)
    const there = broker.forwardedSubscriptions.ofPair(pair).filter(({ state }) => state !== 'leaving')
    if (wanted === undefined) {
      for (const one of there) await move(tenant, broker, one, 'leaving')
      return
    }
    const asked = subscription!.asked!
    const print = hash('sha1', JSON.stringify([wanted, registration, asked]))
    if (there.some((one) => one.print === print)) return
    if (broker.forwardedSubscriptions.count() >= limits.forwardedSubscriptionsMax.value) {
      log.warn('subscription.not-passed-on', { tenant, code: 'ngsi-ld.too-many-results' })
      return
    }
    const one: ForwardedSubscription = {
      id: `urn:ngsi-ld:Subscription:${randomUUID()}`,
      subscription: pair.subscription,
      registration: registration!,
      token: randomUUID(),
      print,
      via: asked.via,
      state: 'coming',
    }
    await broker.forwardedSubscriptions.put(one)
    attempt(tenant, broker, one)
  }

  async function move(
    tenant: string,
    broker: TenantBroker,
    one: ForwardedSubscription,
    state: ForwardedState,
  ): Promise<void> {
    const moved = { ...one, state, leavingAt: state === 'leaving' ? clock.now() : undefined }
    await broker.forwardedSubscriptions.put(moved)
    if (state === 'leaving') attempt(tenant, broker, moved)
  }

  /** Attempts the pending step; a failed attempt is retried later. */
  function attempt(tenant: string, broker: TenantBroker, one: ForwardedSubscription): void {
    if (isClosed || busy.has(one.id)) return
    if (sending >= limits.forwardingAtOnce.value) {
      waiting.set(one.id, tenant)
      return
    }
    waiting.delete(one.id)
    busy.add(one.id)
    sending++
    const trial =
      one.state === 'coming' ? createForwarded(tenant, broker, one) : deleteForwarded(tenant, broker, one)
    void trial
      .catch((error: unknown) => report(tenant, error))
      .finally(() => {
        busy.delete(one.id)
        sending--
        const now = broker.forwardedSubscriptions.get(one.id)
        // The subscription may have been cancelled during the request.
        if (now?.state === 'leaving' && one.state === 'coming') attempt(tenant, broker, now)
        const [next] = waiting
        if (next !== undefined) attemptWaiting(...next)
      })
  }

  /** Attempts a step that waited for a free slot. */
  function attemptWaiting(id: string, tenant: string): void {
    waiting.delete(id)
    const broker = ports.tenant(tenant)
    const one = broker?.forwardedSubscriptions.get(id)
    if (broker !== undefined && (one?.state === 'coming' || one?.state === 'leaving'))
      attempt(tenant, broker, one)
  }

  function send(
    { tenant, broker, one }: { tenant: string; broker: TenantBroker; one: ForwardedSubscription },
    body?: { readonly json: JsonObject; readonly context: Context },
  ): Promise<SourceAnswer> {
    const requester = {
      registrations: broker.registrations,
      tenant,
      alias: ports.alias(tenant),
      headers: one.via === undefined ? {} : { via: one.via },
    }
    const headers = { accept: 'application/json' }
    const request =
      body === undefined
        ? {
            method: 'DELETE',
            path: `${subscriptionsPath}/${encodeURIComponent(one.id)}`,
            headers,
            contexts: [coreContext] as const,
          }
        : {
            method: 'POST',
            path: subscriptionsPath,
            headers: { ...headers, 'content-type': 'application/ld+json' },
            body: JSON.stringify({ ...body.json, '@context': body.context.reference }),
            contexts: [body.context] as const,
          }
    return ports.sources.send(requester, one.registration, request)
  }

  async function createForwarded(
    tenant: string,
    broker: TenantBroker,
    one: ForwardedSubscription,
  ): Promise<void> {
    const subscription = broker.subscriptions.get(one.subscription)?.subscription
    const wanted = wantedOf(subscription, one.registration)
    if (wanted === undefined) return move(tenant, broker, one, 'leaving')
    const context = await ports.contexts.resolve(wanted.context, tenant)
    // A source behind a tunnel also delivers its notifications through it.
    const way = isTunnelled(one.registration.endpoint)
      ? tunnelUri(ports.alias(''))
      : subscription!.asked!.origin
    const uri = `${way}${sourceNotificationsPath}/${one.token}${
      tenant === '' ? '' : `?tenant=${encodeURIComponent(tenant)}`
    }`
    const { notification } = wanted
    const { status: _, ...members } = renderSubscription(
      {
        ...wanted,
        id: one.id,
        notification: { ...notification, endpoint: { ...notification.endpoint, uri } },
      },
      { context, nowMs: clock.now() },
    )
    const answer = await send({ tenant, broker, one }, { json: members, context })
    const now = broker.forwardedSubscriptions.get(one.id)
    if (now?.state !== 'coming' || 'failure' in answer) return
    const { status } = answer
    const state = stateAfter(status)
    if (state === 'coming') return
    if (state === 'refused')
      log.warn('subscription.refused', { tenant, registration: one.registration.id, status })
    await broker.forwardedSubscriptions.put({ ...now, state })
    const pair = { subscription: one.subscription, registration: one.registration.id }
    for (const other of broker.forwardedSubscriptions.ofPair(pair))
      if (other.id !== one.id && other.state !== 'leaving') await move(tenant, broker, other, 'leaving')
  }

  async function deleteForwarded(
    tenant: string,
    broker: TenantBroker,
    one: ForwardedSubscription,
  ): Promise<void> {
    const answer = await send({ tenant, broker, one })
    if ('failure' in answer || answer.status >= 500) {
      const { leavingAt = clock.now(), registration } = one
      if (clock.now() - leavingAt < limits.forwardingLeavingMs.value) return
      log.warn('subscription.left-behind', { tenant, registration: registration.id })
    }
    await broker.forwardedSubscriptions.delete(one.id)
  }

  /** Retries pending steps, and drops subscriptions of expired registrations. */
  function sweep(): void {
    for (const tenant of known) {
      const broker = ports.tenant(tenant)
      if (broker === undefined) continue
      for (const one of broker.forwardedSubscriptions.all()) {
        const { subscription, registration, state } = one
        if (state === 'coming' || state === 'leaving') attempt(tenant, broker, one)
        else if (broker.registrations.get(registration.id) === undefined)
          enqueue(tenant, (at) => settle(tenant, at, { subscription, registration: registration.id }))
      }
    }
  }

  return Object.freeze({
    subscriptionChanged: (tenant: string, id: string) =>
      enqueue(tenant, async (broker) => {
        const ids = new Set(broker.registrations.live().map(({ registration }) => registration.id))
        for (const one of broker.forwardedSubscriptions.all())
          if (one.subscription === id) ids.add(one.registration.id)
        for (const registration of ids) await settle(tenant, broker, { subscription: id, registration })
      }),
    registrationChanged: (tenant: string, id: string) =>
      enqueue(tenant, (broker) => settleRegistration(tenant, broker, id, settle)),
    /** Resumes pending steps after a start, and applies changes made meanwhile. */
    start(tenants: readonly string[]): void {
      for (const tenant of tenants)
        enqueue(tenant, async (broker) => {
          if (broker.registrations.isEmpty() && broker.forwardedSubscriptions.count() === 0) return
          const ids = new Set(broker.registrations.live().map(({ registration }) => registration.id))
          for (const one of broker.forwardedSubscriptions.all()) ids.add(one.registration.id)
          for (const id of ids) await settleRegistration(tenant, broker, id, settle)
          sweep()
        })
    },
    async close(): Promise<void> {
      isClosed = true
      clearInterval(timer)
      await queue
    },
  })
}

/** The state of a subscription after the source's response to its creation. */
function stateAfter(status: number): 'coming' | 'there' | 'refused' {
  // A 409 means that an earlier attempt succeeded and its response was lost.
  if ((status >= 200 && status < 300) || status === 409) return 'there'
  const mayPass = status === 408 || status === 429 || (status >= 500 && status !== 508)
  return mayPass ? 'coming' : 'refused'
}

type Settle = (tenant: string, broker: TenantBroker, pair: ForwardingPair) => Promise<void>

/** Number of pairs handled in one commit and one turn. */
const pairsAtOnce = 64

/** Reconciles every subscription that this registration concerns or concerned. */
async function settleRegistration(
  tenant: string,
  broker: TenantBroker,
  registration: string,
  settle: Settle,
): Promise<void> {
  const ids = new Set<string>()
  for (const one of broker.forwardedSubscriptions.all())
    if (one.registration.id === registration) ids.add(one.subscription)
  if (broker.registrations.get(registration) !== undefined) {
    const { views } = broker.subscriptions.list({ limit: limits.subscriptionsMax.value, offset: 0 })
    for (const { subscription } of views) if (subscription.asked !== undefined) ids.add(subscription.id)
  }
  const all = [...ids]
  for (let from = 0; from < all.length; from += pairsAtOnce) {
    const some = all.slice(from, from + pairsAtOnce)
    await Promise.all(some.map((subscription) => settle(tenant, broker, { subscription, registration })))
    await nextTurn()
  }
}
