/**
 * Opens the part of the orchestrator that receives notifications for applications: shared subscriptions at
 * the broker, the outbox, and the ways to the applications.
 */
import type { BrokerPort, ForwardPort, Host, RouteEnvironment } from '#contract'
import { platformContextDocument } from '#ngsi-ld/context/platform-context.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { openAmqpDelivery } from './amqp/amqp-delivery.ts'
import { createLeftoverNames, leftoverTable } from './amqp/leftover-statements.ts'
import { type ClientDeliveries, clientQueueOf, deliveriesOf } from './amqp/topology.ts'
import type { RedisCopies } from './cache/redis-copies.ts'
import { failureTables, switchTables } from './failures/failure-statements.ts'
import { openStreamFailures } from './failures/open-failures.ts'
import { createEmbeddedDelivery } from './notifications/embedded-delivery.ts'
import { createNotificationOutbox } from './notifications/notification-outbox.ts'
import { notificationTables, prepareNotifications } from './notifications/notification-statements.ts'
import { createReceipt } from './notifications/receipt.ts'
import { createClientSubscriptions } from './subscriptions/client-subscriptions.ts'
import { subscriptionTables } from './subscriptions/shared-statements.ts'
import { createSharedSubscriptions, type SharedSubscriptions } from './subscriptions/shared-subscriptions.ts'
import { createSubscribedBroker } from './subscriptions/subscribed-broker.ts'
import { createSubscriptionCopies } from './subscriptions/subscription-copies.ts'
import { createSubscriptionUpkeep } from './subscriptions/subscription-upkeep.ts'

/** Part of the first migration step. */
export const deliveryTables = [notificationTables, leftoverTable, subscriptionTables].join('\n')
/** Later migration steps. */
export const laterTables = [failureTables, switchTables]

export interface NotificationSettings {
  /** `mdr`, or the address of a broker. */
  readonly broker: string
  /** `ranking`, or the address of a ranking component. */
  readonly ranking: string
  readonly tokenFile?: string | undefined
  readonly caFile?: string | undefined
  readonly referenceUrl?: string | undefined
  readonly amqp: {
    readonly host?: string | undefined
    readonly username?: string | undefined
    readonly passwordFile?: string | undefined
    readonly caFile?: string | undefined
  }
}

const needs = ['mdr', 'changes', 'component', 'remote', 'database', 'exchanges', 'publish'] as const
export type NotificationHost = Host<NotificationSettings, (typeof needs)[number]>

/**
 * @param forward the broker, for requests that are not of the orchestrator.
 * @param copies undefined without Redis.
 */
export async function openNotifications(
  host: NotificationHost,
  forward: ForwardPort,
  copies: RedisCopies | undefined,
) {
  const { settings, database, clock, log, metrics, signal } = host
  const { amqp: server } = settings
  const received = metrics.counter('selvedge_orchestrator_received_total')
  const givenUp = metrics.counter('selvedge_orchestrator_given_up_total')
  const countGivenUp = (count: number): void => {
    givenUp.value += count
  }
  const reference = (): string | undefined =>
    settings.referenceUrl ?? (host.addresses()[0] && `${host.addresses()[0]}/notify`)

  const outbox = createNotificationOutbox({
    database,
    table: prepareNotifications(database),
    arrived(id) {
      amqp?.arrived(id)
      embedded?.arrived(id)
    },
    givenUp: countGivenUp,
    log,
  })
  const broker = brokerPortOf(host)
  const failures = openStreamFailures({
    host,
    broker,
    ranking: rankingPortOf(host),
    outbox,
    shared: () => shared,
    switched: (id) => void upkeep.check(id),
    callback: () => (reference() === undefined ? undefined : shared.addressOf('stream-failures')),
  })
  const shared: SharedSubscriptions = createSharedSubscriptions({
    database,
    broker: createSubscribedBroker(broker, {
      hasRights: settings.broker !== 'mdr',
      monotonic: clock.monotonic,
    }),
    reference,
    context: isObject(platformContextDocument) ? platformContextDocument['@context']! : null,
    notifierInfo: settings.broker === 'mdr' ? ownNotifier : [],
    switchedTo: (id) => failures.switchedTo(id),
    async changed({ id, clients }, before) {
      outbox.setLanes(id, lanesOf(clients))
      inRedis?.put(id)
      amqp?.remove(id, before)
      embedded?.changed(id, clients, before)
      await amqp?.declare(id)
    },
    created: (subscription) => failures.watch(subscription),
    ended(subscription) {
      const { id, clients } = subscription
      outbox.remove(id)
      inRedis?.remove(subscription)
      amqp?.remove(id, clients)
      embedded?.changed(id, new Map(), clients)
      failures.unwatch(id)
    },
    clock,
    log,
  })
  const inRedis = copies && createSubscriptionCopies({ shared, copies, rest: database.rest })
  const embedded =
    server.host === undefined
      ? createEmbeddedDelivery({
          outbox,
          publish: host.publish,
          clientsOf: (id) => shared.get(id)?.clients.keys() ?? [],
          givenUp: countGivenUp,
          clock,
          log,
        })
      : undefined
  const lanesOf = (clients: ClientDeliveries): readonly string[] =>
    embedded?.lanesOf(clients) ?? deliveriesOf(clients)
  for (const id of shared.ids()) {
    const { clients } = shared.get(id)!
    outbox.setLanes(id, lanesOf(clients))
    embedded?.changed(id, clients, new Map())
  }
  const amqp =
    server.host === undefined
      ? undefined
      : await openAmqpDelivery(
          {
            open: host.exchanges,
            outbox,
            ids: shared.ids,
            clientsOf: (id) => shared.get(id)?.clients,
            leftovers: createLeftoverNames(database),
            clock,
            log,
            signal,
          },
          { ...server, url: server.host },
        )
  const upkeep = createSubscriptionUpkeep({ shared, isReady: () => reference() !== undefined, signal })
  const receipt = createReceipt({
    subscriptions: shared,
    outbox,
    received: () => {
      received.value++
    },
  })
  metrics.gauge('selvedge_orchestrator_subscriptions', shared.size)
  metrics.gauge('selvedge_orchestrator_waiting', outbox.waiting)
  upkeep.start()
  inRedis?.start()
  failures.start()

  return Object.freeze({
    requests: createClientSubscriptions({
      broker: forward,
      shared,
      queueOf(id, client) {
        const delivery = shared.get(id)?.clients.get(client)?.delivery
        return delivery === undefined || amqp === undefined ? undefined : clientQueueOf(id, client, delivery)
      },
      streams({ request, environment }, id, client) {
        if (embedded === undefined)
          throw badRequestData('has no stream: notifications are published by AMQP', 'notifications')
        return embedded.respond(request, environment, { id, client })
      },
    }),
    /** Responds to a notification of a broker. */
    async notify(request: Request, { body }: RouteEnvironment): Promise<Response> {
      const [, secret = ''] = /\/notify(?:\/([^/?]*))?[/]*(?:\?|$)/.exec(request.url) ?? []
      const isOfStreams = await failures.receive(secret, body)
      const id = isOfStreams ? 'streams' : await receipt.receive(secret, body)
      return new Response(`Received: ${id}`, { headers: { 'Content-Type': 'text/plain; charset=utf-8' } })
    },
    /** Takes a notification of this gateway's own broker. */
    async notified(uri: string, body: Buffer): Promise<void> {
      await receipt.receive(uri.slice(uri.lastIndexOf('/') + 1), async () => body)
    },
    /** Sends copies of all subscriptions to Redis, which may have lost them. */
    copyAll: (): void => inRedis?.copyAll(),
    status: () => ({
      subscriptions: shared.size(),
      waiting: outbox.waiting(),
      waitingBytes: outbox.bytes(),
      givenUp: outbox.lost(),
      failures: failures.status(),
      ...(amqp === undefined ? {} : { amqp: amqp.status() }),
      ...(embedded === undefined ? {} : { streams: embedded.streams() }),
    }),
    complaints: () => [
      ...upkeep.complaints(),
      ...failures.complaints(),
      ...(outbox.lost() === 0 ? [] : [`${outbox.lost()} notifications were given up since the start`]),
      ...(amqp?.complaints() ?? []),
    ],
    async close(): Promise<void> {
      await failures.close()
      inRedis?.close()
      await amqp?.close()
      embedded?.close()
      await outbox.close()
    },
  })
}

/** Notifications of this gateway's own broker are passed on in process. */
const ownNotifier = [
  { key: 'selvedge:mode', value: 'component' },
  { key: 'selvedge:component', value: 'orchestrator' },
]

function brokerPortOf({ settings, mdr, remote }: NotificationHost): BrokerPort {
  const { broker, tokenFile, caFile } = settings
  return broker === 'mdr' ? mdr : remote({ url: broker, tokenFile, caFile, isConfigured: true })
}

function rankingPortOf({ settings, component, remote }: NotificationHost): BrokerPort {
  const { ranking, caFile } = settings
  return ranking === 'ranking' ? component('ranking') : remote({ url: ranking, caFile, isConfigured: true })
}

export const isNotify = (url: string): boolean =>
  /^\/notify(?:[/?]|$)/.test(url.slice(url.indexOf('/', url.indexOf('://') + 3)))
