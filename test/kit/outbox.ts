/**
 * A dispatcher on the real write path: deliveries are committed through the door, announced when they are on disk,
 * and sent by real HTTP. What it sends names the delivery, so that a receiver can judge order and completeness.
 */

import { createLog } from '#base/register/log.ts'
import { createMetrics, type Metrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { createDispatcher, type Dispatcher, type DispatcherSettings } from '#delivery/dispatcher.ts'
import { createHttpEndpoint } from '#delivery/http-endpoint.ts'
import type { AttemptOutcome, RenderedRequest } from '#delivery/pump.ts'
import { createDeliveries, type Deliveries, type Delivery } from '#store/tables/delivery-rows.ts'
import { type OpenDoor, openDoor } from './door.ts'

/** A pending delivery; in tests of the order, the value grows per entity. */
export interface PendingDelivery {
  readonly sub?: number
  readonly endpoint: string
  readonly entity: string
  readonly value?: number
  readonly batch?: number
}

export interface Outbox extends OpenDoor {
  readonly dispatcher: Dispatcher
  readonly reads: Deliveries
  readonly metrics: Metrics
  readonly outcomes: { sub: number; outcome: AttemptOutcome }[]
  readonly dropped: Map<number, number>
  readonly logged: string[]
  /** Commits deliveries in one group and announces them. */
  enqueue(list: readonly PendingDelivery[]): Promise<void>
  /** Rows not yet settled. */
  rows(): number
}

export interface OutboxOptions extends DispatcherSettings {
  /** Changes what is sent; undefined makes the delivery void. */
  readonly render?: (rendered: RenderedRequest, delivery: Delivery) => RenderedRequest | undefined
  /** How many deliveries of a batch one request may hold. */
  readonly sharing?: number
}

export async function openOutbox(file: string, options: OutboxOptions = {}): Promise<Outbox> {
  const opened = await openDoor(file)
  const { door, database } = opened
  const reads = createDeliveries(database)
  const metrics = createMetrics()
  const outcomes: Outbox['outcomes'] = []
  const dropped = new Map<number, number>()
  const logged: string[] = []
  const http = createHttpEndpoint(systemClock, { allowsLoopback: true })
  const { render = (rendered: RenderedRequest) => rendered, sharing = 1, ...settings } = options
  const dispatcher = createDispatcher(
    {
      door,
      reads,
      render: (deliveries) => render(rendered(deliveries.slice(0, sharing)), deliveries[0]!),
      send: http.send,
      subscriptions: {
        outcome: (sub, outcome) => outcomes.push({ sub, outcome }),
        dropped: (sub, count) => dropped.set(sub, (dropped.get(sub) ?? 0) + count),
        statistics: (sub) => JSON.stringify({ sent: outcomes.filter((one) => one.sub === sub).length }),
      },
      clock: systemClock,
      log: createLog({ level: 'debug', clock: systemClock, write: (line) => logged.push(line) }),
      metrics,
    },
    settings,
  )
  let last = reads.last()
  dispatcher.start()
  return {
    ...opened,
    dispatcher,
    reads,
    metrics,
    outcomes,
    dropped,
    logged,
    rows: () => (database.prepare('SELECT count(*) AS n FROM delivery').get() as { n: number }).n,
    enqueue: (list) =>
      door.commit((stage) => {
        const deliveries = list.map((pending): Delivery => {
          const { sub = 1, endpoint, entity, value = 0, batch = null } = pending
          const body = JSON.stringify({ entity, value })
          return {
            d: ++last,
            sub,
            endpoint,
            entity,
            at: stage.at,
            batch,
            stream: null,
            t: null,
            value: null,
            body,
          }
        })
        for (const { d, sub, endpoint, entity, at, batch, body } of deliveries) {
          stage.write('delivery.insert', d, sub, endpoint, entity, at, batch, null, null, null, body)
        }
        stage.published(() => dispatcher.committed(deliveries))
      }),
    async close() {
      await dispatcher.close(2000)
      http.close()
      await opened.close()
    },
  }
}

function rendered(deliveries: readonly Delivery[]): RenderedRequest {
  const [{ d, sub, endpoint, body }] = deliveries as [Delivery]
  const entities = deliveries.map(({ entity }) => entity)
  const values = deliveries.map((one) => (JSON.parse(one.body ?? '{}') as { value?: number }).value)
  const shared = entities.length > 1 ? { entities, values } : {}
  return {
    uri: endpoint,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ d, sub, ...(JSON.parse(body ?? '{}') as object), ...shared }),
    count: deliveries.length,
  }
}
