/**
 * Distributed subscriptions (GS CIM 009, 4.3.6 and 5.8): a subscription is made at every source that claims something of
 * it and offers that, is made anew there when either changes, and is deleted there when it is not wanted any more.
 * What is to be done stands on disk before it is tried, so that a source that is away gets it later. The new one is
 * there before the old one goes, so nothing is missed, and something may be told twice.
 */
import { hash, randomUUID } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { toGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import type { Pair, PassedOn, PassedState } from '#broker/sources/passed-subscriptions.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import { type Context, coreContext } from '#ngsi-ld/context/context.ts'
import { forwardedSubscription } from '#ngsi-ld/federation/forwarded-subscription.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { pseudonymsOf } from '#ngsi-ld/federation/via.ts'
import { renderSubscription, type Subscription } from '#ngsi-ld/subscription/subscription.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { isTunnelled, tunnelUri } from '#ngsi-ld/values/tunnel-uri.ts'
import type { SourceAnswer, Sources } from './sources.ts'

export interface PassingOnPorts {
  readonly sources: Sources
  readonly contexts: Pick<Contexts, 'resolve'>
  readonly tenant: (name: string) => TenantBroker | undefined
  /** What this gateway calls itself in Via, in a tenant. */
  readonly alias: (tenant: string) => string
  readonly clock: Clock
  readonly log: Log
  /** What splitEntities is where a subscription does not say it. */
  readonly splits?: boolean | undefined
}

/** Where sources bring notifications to. */
export const sourceNotificationsPath = '/selvedge/v1/source-notifications'
const subscriptionsPath = '/ngsi-ld/v1/subscriptions'

export interface PassingOn {
  subscriptionChanged(tenant: string, id: string): void
  registrationChanged(tenant: string, id: string): void
  /** Takes up what was to be done, and makes up for what changed meanwhile. */
  start(tenants: readonly string[]): void
  close(): Promise<void>
}

export function createPassingOn(ports: PassingOnPorts): PassingOn {
  const { clock, log } = ports
  const known = new Set<string>()
  /** Ids of what is being asked for right now. */
  const busy = new Set<string>()
  /** Ids of what has to wait for that, with the tenant. */
  const waiting = new Map<string, string>()
  let queue: Promise<void> = Promise.resolve()
  let isClosed = false
  let sending = 0
  const timer = setInterval(() => void sweep(), limits.passedOnRetryMs.value).unref()

  /** Runs after what came before; nobody waits for it. */
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

  /** Brings what a source has in line with what is wanted of it now. */
  async function settle(tenant: string, broker: TenantBroker, pair: Pair): Promise<void> {
    const subscription = broker.subscriptions.get(pair.subscription)?.subscription
    const registration = broker.registrations.get(pair.registration)?.registration
    const wanted = wantedOf(subscription, registration)
    const there = broker.passedOn.ofPair(pair).filter(({ state }) => state !== 'leaving')
    if (wanted === undefined) {
      for (const one of there) await move(tenant, broker, one, 'leaving')
      return
    }
    const asked = subscription!.asked!
    const print = hash('sha1', JSON.stringify([wanted, registration, asked]))
    if (there.some((one) => one.print === print)) return
    if (broker.passedOn.count() >= limits.passedSubscriptionsMax.value) {
      log.warn('subscription.not-passed-on', { tenant, code: 'ngsi-ld.too-many-results' })
      return
    }
    const one: PassedOn = {
      id: `urn:ngsi-ld:Subscription:${randomUUID()}`,
      subscription: pair.subscription,
      registration: registration!,
      token: randomUUID(),
      print,
      via: asked.via,
      state: 'coming',
    }
    await broker.passedOn.put(one)
    attempt(tenant, broker, one)
  }

  async function move(
    tenant: string,
    broker: TenantBroker,
    one: PassedOn,
    state: PassedState,
  ): Promise<void> {
    const moved = { ...one, state, leavingAt: state === 'leaving' ? clock.now() : undefined }
    await broker.passedOn.put(moved)
    if (state === 'leaving') attempt(tenant, broker, moved)
  }

  /** Tries what is to be done; what fails is tried again later. */
  function attempt(tenant: string, broker: TenantBroker, one: PassedOn): void {
    if (isClosed || busy.has(one.id)) return
    if (sending >= limits.passedOnAtOnce.value) {
      waiting.set(one.id, tenant)
      return
    }
    waiting.delete(one.id)
    busy.add(one.id)
    sending++
    const trial = one.state === 'coming' ? make(tenant, broker, one) : unmake(tenant, broker, one)
    void trial
      .catch((error: unknown) => report(tenant, error))
      .finally(() => {
        busy.delete(one.id)
        sending--
        const now = broker.passedOn.get(one.id)
        // It may have become unwanted meanwhile.
        if (now?.state === 'leaving' && one.state === 'coming') attempt(tenant, broker, now)
        const [next] = waiting
        if (next !== undefined) take(...next)
      })
  }

  /** Tries what had to wait because enough was being asked for. */
  function take(id: string, tenant: string): void {
    waiting.delete(id)
    const broker = ports.tenant(tenant)
    const one = broker?.passedOn.get(id)
    if (broker !== undefined && (one?.state === 'coming' || one?.state === 'leaving'))
      attempt(tenant, broker, one)
  }

  function send(
    { tenant, broker, one }: { tenant: string; broker: TenantBroker; one: PassedOn },
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

  async function make(tenant: string, broker: TenantBroker, one: PassedOn): Promise<void> {
    const subscription = broker.subscriptions.get(one.subscription)?.subscription
    const wanted = wantedOf(subscription, one.registration)
    if (wanted === undefined) return move(tenant, broker, one, 'leaving')
    const context = await ports.contexts.resolve(wanted.context, tenant)
    // Who holds a tunnel open brings its notifications through it, too.
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
    const now = broker.passedOn.get(one.id)
    if (now?.state !== 'coming' || 'failure' in answer) return
    const { status } = answer
    // That it exists already is what an earlier try did whose answer was lost.
    const isThere = (status >= 200 && status < 300) || status === 409
    if (!isThere && (status >= 500 ? status !== 508 : status === 408 || status === 429)) return
    if (!isThere) log.warn('subscription.refused', { tenant, registration: one.registration.id, status })
    await broker.passedOn.put({ ...now, state: isThere ? 'there' : 'refused' })
    const pair = { subscription: one.subscription, registration: one.registration.id }
    for (const other of broker.passedOn.ofPair(pair))
      if (other.id !== one.id && other.state !== 'leaving') await move(tenant, broker, other, 'leaving')
  }

  async function unmake(tenant: string, broker: TenantBroker, one: PassedOn): Promise<void> {
    const answer = await send({ tenant, broker, one })
    if ('failure' in answer || answer.status >= 500) {
      const { leavingAt = clock.now(), registration } = one
      if (clock.now() - leavingAt < limits.passedOnLeavingMs.value) return
      log.warn('subscription.left-behind', { tenant, registration: registration.id })
    }
    await broker.passedOn.delete(one.id)
  }

  /** Tries again what did not work, and lets go what belongs to registrations that have expired. */
  function sweep(): void {
    for (const tenant of known) {
      const broker = ports.tenant(tenant)
      if (broker === undefined) continue
      for (const one of broker.passedOn.all()) {
        const { subscription, registration, state } = one
        if (state === 'coming' || state === 'leaving') attempt(tenant, broker, one)
        else if (broker.registrations.get(registration.id) === undefined)
          enqueue(tenant, (at) => settle(tenant, at, { subscription, registration: registration.id }))
      }
    }
  }

  return Object.freeze({
    subscriptionChanged: (tenant, id) =>
      enqueue(tenant, async (broker) => {
        const ids = new Set(broker.registrations.live().map(({ registration }) => registration.id))
        for (const one of broker.passedOn.all()) if (one.subscription === id) ids.add(one.registration.id)
        for (const registration of ids) await settle(tenant, broker, { subscription: id, registration })
      }),
    registrationChanged: (tenant, id) =>
      enqueue(tenant, (broker) => settleRegistration(tenant, broker, id, settle)),
    start(tenants) {
      for (const tenant of tenants)
        enqueue(tenant, async (broker) => {
          if (broker.registrations.isEmpty() && broker.passedOn.count() === 0) return
          const ids = new Set(broker.registrations.live().map(({ registration }) => registration.id))
          for (const one of broker.passedOn.all()) ids.add(one.registration.id)
          for (const id of ids) await settleRegistration(tenant, broker, id, settle)
          sweep()
        })
    },
    async close() {
      isClosed = true
      clearInterval(timer)
      await queue
    },
  } satisfies PassingOn)
}

type Settle = (tenant: string, broker: TenantBroker, pair: Pair) => Promise<void>

/** How many pairs share a commit, and a turn. */
const pairsAtOnce = 64

/** Every subscription that this registration has, or had, something to do with. */
async function settleRegistration(
  tenant: string,
  broker: TenantBroker,
  registration: string,
  settle: Settle,
): Promise<void> {
  const ids = new Set<string>()
  for (const one of broker.passedOn.all()) if (one.registration.id === registration) ids.add(one.subscription)
  if (broker.registrations.get(registration) !== undefined) {
    const { views } = broker.subscriptions.list({ limit: limits.subscriptionsMax.value, offset: 0 })
    for (const { subscription } of views) if (subscription.asked !== undefined) ids.add(subscription.id)
  }
  const all = [...ids]
  for (let from = 0; from < all.length; from += pairsAtOnce) {
    const some = all.slice(from, from + pairsAtOnce)
    await Promise.all(some.map((subscription) => settle(tenant, broker, { subscription, registration })))
    await new Promise((resolve) => setImmediate(resolve))
  }
}
