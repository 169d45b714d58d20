/**
 * Notifications for consumers that connect to the gateway: one stream per subscription, read from the outbox
 * in commit order and stored until confirmed. After a reconnect, a consumer receives all unconfirmed
 * notifications again. A second consumer replaces the first, whose connection is probably dead. Beyond the
 * ceiling of an endpoint, the oldest notifications are dropped and counted.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Counter } from '#base/register/metrics.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Consumer, Listening } from '#broker/subscriptions/subscription-requests.ts'
import { streamUri } from '#ngsi-ld/subscription/subscription.ts'
import type { Deliveries, Delivery } from '#store/tables/delivery-rows.ts'
import type { DispatcherPorts } from './dispatcher.ts'

export interface StreamingPorts {
  readonly door: Pick<Door, 'submit' | 'commit'>
  readonly reads: Deliveries
  readonly render: DispatcherPorts['render']
  readonly subscriptions: DispatcherPorts['subscriptions']
  readonly clock: DispatcherPorts['clock']
  readonly log: Log
  readonly dropped: Counter
  readonly sent: Counter
}

interface Lane {
  readonly endpoint: string
  waiting: number
  /** Highest delivery number already counted as sent; re-sends are not counted. */
  sentUpTo: number
  isDropping: boolean
  consumer: Active | undefined
}

interface Active {
  readonly consumer: Consumer
  /** Number of the last delivery sent to this consumer. */
  cursor: number
  isFull: boolean
}

/** Rows read at once. */
const readCount = limits.notificationEntitiesMax.value
/**
 * How far a stream may exceed its ceiling before its oldest rows are dropped, so that one commit drops many.
 */
const slack = 1000

export type Streaming = ReturnType<typeof createStreaming>

export function createStreaming(ports: StreamingPorts, settings: { readonly max: number }) {
  const { reads, door, subscriptions } = ports
  const lanes = new Map<string, Lane>()

  function laneOf(endpoint: string): Lane {
    const known = lanes.get(endpoint)
    if (known !== undefined) return known
    const lane = { endpoint, waiting: count(endpoint), sentUpTo: 0, isDropping: false, consumer: undefined }
    lanes.set(endpoint, lane)
    return lane
  }
  const count = (endpoint: string): number => reads.backlog(endpoint, []).count

  /** Sends notifications until there are no more or the consumer is full. */
  function pump(lane: Lane): void {
    const active = lane.consumer
    while (active !== undefined && active === lane.consumer && !active.isFull) {
      const span = { endpoint: lane.endpoint, after: active.cursor, count: readCount }
      const rows = reads.next(span, limits.deliveriesWindowBytes.value)
      if (rows.length === 0) return
      for (let from = 0; from < rows.length; ) {
        if (active.isFull || active !== lane.consumer) return
        const shared = sharing(rows, from)
        // More rows of this batch may follow, so it is read again from its first row.
        if (from > 0 && shared.length > 1 && from + shared.length === rows.length) break
        from += write(lane, active, shared)
      }
    }
  }

  /** Writes one notification and returns how many rows it contains. */
  function write(lane: Lane, active: Active, rows: readonly Delivery[]): number {
    let rendered: ReturnType<StreamingPorts['render']>
    try {
      rendered = ports.render(rows)
    } catch (error) {
      if (rows.length > 1) return write(lane, active, rows.slice(0, 1))
      ports.log.error('gateway.fault', { delivery: rows[0]?.d, during: 'streaming', error })
    }
    const numbers = rows.slice(0, rendered?.count).map(({ d }) => d)
    const last = rows[numbers.length - 1]!
    active.cursor = last.d
    if (rendered === undefined) {
      settle(lane, numbers)
      return numbers.length
    }
    active.isFull = !active.consumer.write({ id: eventIdOf(last), body: rendered.body.toString() })
    if (last.d <= lane.sentUpTo) return numbers.length
    lane.sentUpTo = last.d
    ports.sent.value++
    subscriptions.outcome(last.sub, { ok: true, at: ports.clock.now() })
    return numbers.length
  }

  /** Deletes the rows in a later commit. Until then they may be sent again, which consumers must expect. */
  function settle(lane: Lane, numbers: readonly number[]): void {
    const text = JSON.stringify(numbers)
    const isTaken = door.submit({
      bytes: text.length,
      urgent: false,
      isSparing: true,
      decide: (stage) => stage.write('delivery.settle', text),
      answer: () => {
        lane.waiting = count(lane.endpoint)
        lane.isDropping = false
      },
    })
    if (!isTaken) lane.isDropping = false
  }

  function dropOldest(lane: Lane): void {
    if (lane.isDropping || lane.waiting <= settings.max + Math.min(slack, settings.max / 10)) return
    const heads = reads.heads({ endpoint: lane.endpoint, after: 0, count: lane.waiting - settings.max })
    lane.isDropping = true
    for (const { sub } of heads) subscriptions.dropped(sub, 1)
    ports.dropped.value += heads.length
    settle(
      lane,
      heads.map(({ d }) => d),
    )
  }

  return Object.freeze({
    start(): void {
      for (const endpoint of reads.endpoints()) if (isStreamed(endpoint)) dropOldest(laneOf(endpoint))
    },
    committed(deliveries: readonly Delivery[]): void {
      const touched = new Set<Lane>()
      for (const { endpoint } of deliveries) {
        const known = lanes.get(endpoint)
        const lane = known ?? laneOf(endpoint)
        // A new lane has already counted its rows, including these.
        if (known !== undefined && !touched.has(lane)) lane.waiting += countOf(deliveries, endpoint)
        touched.add(lane)
      }
      for (const lane of touched) {
        dropOldest(lane)
        pump(lane)
      }
    },
    reread(endpoint: string): void {
      const lane = lanes.get(endpoint)
      if (lane === undefined) return
      lane.waiting = count(endpoint)
      // The subscription was deleted or has another endpoint.
      lane.consumer?.consumer.close()
      if (lane.waiting === 0) lanes.delete(endpoint)
    },
    listen(endpoint: string, consumer: Consumer): Listening {
      const lane = laneOf(endpoint)
      lane.consumer?.consumer.close()
      const active: Active = { consumer, cursor: 0, isFull: false }
      lane.consumer = active
      // The caller receives its handle before the first notification.
      setImmediate(() => pump(lane))
      return Object.freeze({
        ready() {
          active.isFull = false
          pump(lane)
        },
        end() {
          if (lane.consumer === active) lane.consumer = undefined
        },
      })
    },
    /** Settles all notifications up to this event. @throws ngsi-ld.bad-request-data for an invalid id. */
    async confirm(endpoint: string, eventId: string): Promise<void> {
      const [at, d] = parseEventId(eventId)
      const sub = Number(endpoint.slice(endpoint.lastIndexOf(':') + 1))
      await door.commit(
        (stage) => {
          stage.write('delivery.confirm', endpoint, at, at, d)
          const statistics = subscriptions.statistics(sub)
          if (statistics !== undefined) stage.write('subscription.stats', statistics, sub)
        },
        { isSparing: true },
      )
      const lane = lanes.get(endpoint)
      if (lane !== undefined) lane.waiting = count(endpoint)
    },
    /** Number of unconfirmed notifications of all streams. */
    waiting: () => [...lanes.values()].reduce((sum, lane) => sum + lane.waiting, 0),
    close(): void {
      for (const { consumer } of lanes.values()) consumer?.consumer.close()
    },
  })
}

/** Whether the endpoint is a stream that consumers connect to. */
export const isStreamed = (endpoint: string): boolean => endpoint.startsWith(streamUri)

/** The rows from `from` on that share a notification: same batch, different entities. */
function sharing(rows: readonly Delivery[], from: number): readonly Delivery[] {
  const first = rows[from]!
  if (first.batch === null) return [first]
  const entities = new Set<string>()
  let to = from
  for (const { sub, batch, entity } of rows.slice(from)) {
    if (sub !== first.sub || batch !== first.batch || entities.has(entity)) break
    entities.add(entity)
    to++
  }
  return rows.slice(from, to)
}

const countOf = (deliveries: readonly Delivery[], endpoint: string): number =>
  deliveries.reduce((sum, delivery) => sum + (delivery.endpoint === endpoint ? 1 : 0), 0)

/** Delivery numbers may be reused after a restart; together with the commit time they are unique. */
const eventIdOf = ({ at, d }: Delivery): string => `${at}-${d}`

function parseEventId(text: string): [at: number, d: number] {
  const found = /^(\d{1,15})-(\d{1,15})$/.exec(text)
  if (found === null) {
    throw new GatewayError(
      'ngsi-ld.bad-request-data',
      `${text} is not the id of a notification of this stream`,
    )
  }
  return [Number(found[1]), Number(found[2])]
}
