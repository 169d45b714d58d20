/**
 * Subscriptions that the orchestrator receives notifications for, each shared by all clients that ask for the
 * same. The first client creates it at the broker, the last one deletes it there. They are on disk, and are
 * created again at a broker that lost them.
 */
import { hash, randomBytes } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { signatureOf } from '#client/subscriptions/callback-signature.ts'
import type { Json, PluginDatabase } from '#contract'
import { offsetDateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { type JsonObject, own } from '#ngsi-ld/values/json.ts'
import { alreadyExists, notFound, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { prepareShared } from './shared-statements.ts'
import type { ClientHeaders, SubscribedBroker } from './subscribed-broker.ts'
import {
  type ClientDelivery,
  checkExchangeName,
  checkOnFailure,
  deliveryOf,
  forwardedBody,
  isSwitching,
  selectedIds,
} from './subscription-form.ts'
import { fingerprintOf, otherIdOf, type SentSubscription, subscriptionIdOf } from './subscription-id.ts'

export interface SubscriptionClient {
  readonly delivery: ClientDelivery
  /** When it subscribed, ms. */
  readonly since: number
}

export interface SharedSubscription {
  readonly id: string
  readonly tenant: string
  readonly fingerprint: string
  readonly created: number
  readonly clients: ReadonlyMap<string, SubscriptionClient>
}

interface KeptSubscription extends SharedSubscription {
  readonly clients: Map<string, SubscriptionClient>
}

export interface SharedSubscriptionsPorts {
  readonly database: PluginDatabase
  readonly broker: SubscribedBroker
  /** Address to which the broker sends notifications; undefined until it is known. */
  readonly reference: () => string | undefined
  /** The platform context, for subscriptions without one. */
  readonly context: Json
  /** Pairs for the notifier of the broker. */
  readonly notifierInfo: readonly Json[]
  /** Selectors of alternatives that a subscription was switched to. */
  readonly switchedTo: (id: string) => readonly JsonObject[]
  /** A subscription or its clients changed; resolves when its exchange is declared. */
  readonly changed: (subscription: SharedSubscription, before: SharedSubscription['clients']) => Promise<void>
  /** A subscription was created at the broker. */
  readonly created: (subscription: SharedSubscription) => void
  /** The last client ended. */
  readonly ended: (subscription: SharedSubscription) => void
  readonly clock: Clock
  readonly log: Log
}

/** A request of a client. */
export interface ClientRequest {
  readonly client: string
  readonly headers: ClientHeaders
}

export type SharedSubscriptions = ReturnType<typeof createSharedSubscriptions>

export function createSharedSubscriptions(ports: SharedSubscriptionsPorts) {
  const { database, broker, clock, log } = ports
  const table = prepareShared(database)
  const secret = table.secret(() => randomBytes(24).toString('hex'))
  const all = new Map<string, KeptSubscription>()
  const byFingerprint = new Map<string, string>()
  /** By the hash of their secret, so that a look-up reveals nothing of a secret by its duration. */
  const bySecret = new Map<string, KeptSubscription>()
  const busy = new Map<string, Promise<unknown>>()

  const secretOf = (id: string): string => signatureOf(secret, id)
  const addressOf = (id: string): string => `${requireReference()}/${secretOf(id)}`

  function requireReference(): string {
    const reference = ports.reference()
    if (reference !== undefined) return reference
    throw new GatewayError('http.busy', 'the address for notifications is not known yet', {
      retryAfterSeconds: 1,
    })
  }

  function keep(subscription: KeptSubscription): void {
    all.set(subscription.id, subscription)
    byFingerprint.set(subscription.fingerprint, subscription.id)
    bySecret.set(hash('sha256', secretOf(subscription.id)), subscription)
  }

  function forget(subscription: KeptSubscription): void {
    all.delete(subscription.id)
    byFingerprint.delete(subscription.fingerprint)
    bySecret.delete(hash('sha256', secretOf(subscription.id)))
  }

  for (const row of table.all()) keep({ ...row, clients: new Map() })
  for (const { subscription, client, ...of } of table.clients())
    all.get(subscription)?.clients.set(client, of)

  /** Requests for one subscription run one after the other. */
  function inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const turn = (busy.get(id) ?? Promise.resolve()).then(work)
    const ended = turn
      .catch(() => undefined)
      .then(() => {
        if (busy.get(id) === ended) busy.delete(id)
      })
    busy.set(id, ended)
    return turn
  }

  function idOf(sent: SentSubscription): string {
    const given = own(sent.body, 'id')
    if (given !== undefined) return checkExchangeName(given)
    const fingerprint = fingerprintOf(sent)
    const known = byFingerprint.get(fingerprint)
    if (known !== undefined) return known
    const id = subscriptionIdOf(sent, requireReference())
    return all.has(id) && all.get(id)!.fingerprint !== fingerprint ? otherIdOf(sent, requireReference()) : id
  }

  async function join(kept: KeptSubscription, client: string, delivery: ClientDelivery): Promise<void> {
    const before = new Map(kept.clients)
    if (before.get(client)?.delivery === delivery) return
    if (!before.has(client) && before.size >= limits.orchestratorSharersMax.value)
      throw tooComplex(`the subscription has ${before.size} clients already`)
    const since = clock.now()
    table.putClient({ subscription: kept.id, client, delivery, since })
    kept.clients.set(client, { delivery, since })
    await ports.changed(kept, before)
  }

  function leave(kept: KeptSubscription, client: string): void {
    table.removeClient(kept.id, client)
    kept.clients.delete(client)
  }

  function drop(kept: KeptSubscription): void {
    database.transaction(() => table.remove(kept.id))()
    forget(kept)
    ports.ended(kept)
  }

  function forwardedOf(id: string): JsonObject {
    const body = table.body(id)
    return forwardedBody(body, {
      id,
      uri: addressOf(id),
      context: ports.context,
      notifierInfo: ports.notifierInfo,
      switchedTo: isSwitching(body) ? ports.switchedTo(id) : [],
    })
  }

  async function create(sent: SentSubscription, id: string, request: ClientRequest): Promise<void> {
    if (all.size >= limits.orchestratorSubscriptionsMax.value)
      throw tooComplex(`there are ${all.size} subscriptions already`)
    const { tenant, linkedContext, body } = sent
    const row = { id, tenant, fingerprint: fingerprintOf(sent), created: clock.now() }
    const whole = linkedContext === undefined ? body : { '@context': linkedContext, ...body }
    const kept: KeptSubscription = { ...row, clients: new Map() }
    // Stored first, since notifications may arrive before the broker's response.
    table.put(row, whole)
    keep(kept)
    try {
      await join(kept, request.client, deliveryOf(body))
      // On disk first: the broker must not have a subscription that is unknown here after a power cut.
      await database.flushed()
      await broker.create(kept, forwardedOf(id), request.headers)
      ports.created(kept)
    } catch (error) {
      drop(kept)
      throw error
    }
  }

  return Object.freeze({
    /** The body as its first client sent it, with its @context. */
    bodyOf: table.body,
    get: (id: string): SharedSubscription | undefined => all.get(id),
    ids: () => all.keys(),
    /** Address at which the broker sends notifications for a name. @throws http.busy */
    addressOf,
    size: () => all.size,
    /** The subscription whose address ends with a secret. */
    ofSecret: (given: string): SharedSubscription | undefined => bySecret.get(hash('sha256', given)),
    /**
     * Subscribes a client, and returns the id.
     * @throws the refusal of the broker; ngsi-ld.already-exists if the id is that of a different one.
     */
    async subscribe(sent: SentSubscription, request: ClientRequest): Promise<string> {
      const delivery = deliveryOf(sent.body)
      checkOnFailure(sent.body, sent.tenant)
      const id = idOf(sent)
      await inTurn(id, async () => {
        const kept = all.get(id)
        if (kept === undefined) return create(sent, id, request)
        if (kept.fingerprint !== fingerprintOf(sent) || kept.tenant !== sent.tenant)
          throw alreadyExists(`${id} is a different subscription`)
        await broker.checkRights(kept, request.headers)
        await join(kept, request.client, delivery)
        await database.flushed()
      })
      return id
    },
    /**
     * Ends the reference of a client. Returns false for a subscription that is not known here.
     * @throws ngsi-ld.not-found if the client has no reference.
     */
    unsubscribe: (id: string, tenant: string, request: ClientRequest): Promise<boolean> =>
      inTurn(id, async () => {
        const kept = all.get(id)
        if (kept === undefined || kept.tenant !== tenant) return false
        const { client } = request
        if (!kept.clients.has(client)) throw notFound(`${client} has no subscription ${id}`)
        const before = new Map(kept.clients)
        if (before.size > 1) {
          await broker.checkRights(kept, request.headers)
          leave(kept, client)
          await ports.changed(kept, before)
        } else {
          await broker.remove(kept, request.headers)
          drop(kept)
        }
        await database.flushed()
        return true
      }),
    /**
     * Checks that the broker accepts the credentials of a request that is answered without it.
     *
     * @throws the refusal of the broker, or its failure.
     */
    async checkRights(id: string, request: ClientRequest): Promise<void> {
      const kept = all.get(id)
      if (kept !== undefined) await broker.checkRights(kept, request.headers)
    },
    /**
     * Checks one subscription at the broker. Creates it if it is missing, and ends it if it has expired.
     * Changes it if its address or the alternatives that it was switched to are different.
     * @throws the failure of the broker.
     */
    check: (id: string): Promise<void> =>
      inTurn(id, async () => {
        const kept = all.get(id)
        if (kept === undefined) return
        const body = table.body(id)
        const expiry = own(body, 'expiresAt')
        if (typeof expiry === 'string' && (offsetDateTimeToMs(expiry) ?? Infinity) <= clock.now())
          return drop(kept)
        const forwarded = forwardedOf(id)
        const ids = isSwitching(body) ? selectedIds(own(forwarded, 'entities')) : undefined
        const state = await broker.find(kept, addressOf(id), ids)
        if (state === 'as expected') return
        if (state === 'different') return broker.change(kept, forwarded)
        log.warn('plugin.subscription-gone', {
          plugin: 'orchestrator',
          broker: broker.address,
          subscription: id,
        })
        await broker.create(kept, forwarded, {})
      }),
  })
}
