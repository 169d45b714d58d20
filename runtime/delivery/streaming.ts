/**
 * Notifications that consumers come for, because nobody can connect to them: one stream per subscription, read from the
 * outbox in order of commit and kept there until it is confirmed. A consumer that comes back is told everything that
 * was not confirmed; a second one takes the place of the first, whose connection is probably dead. What is beyond the
 * ceiling of an endpoint is dropped, oldest first, and counted.
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

export interface Streaming {
  start(): void
  committed(deliveries: readonly Delivery[]): void
  reread(endpoint: string): void
  listen(endpoint: string, consumer: Consumer): Listening
  /** All up to this event are settled. @throws ngsi-ld.bad-request-data for an id that is none of ours. */
  confirm(endpoint: string, eventId: string): Promise<void>
  /** Not yet confirmed, of all streams. */
  waiting(): number
  close(): void
}

interface Lane {
  readonly endpoint: string
  waiting: number
  /** Highest d that was told to anybody since the start: the first telling counts as sent. */
  told: number
  isDropping: boolean
  consumer: Active | undefined
}

interface Active {
  readonly consumer: Consumer
  /** Told up to here. */
  cursor: number
  isFull: boolean
}

/** Rows read at once. */
const readCount = limits.notificationEntitiesMax.value
/** How far beyond its ceiling a stream may grow before the oldest are dropped: a commit for many, not for each. */
const slack = 1000

export function createStreaming(ports: StreamingPorts, settings: { readonly max: number }): Streaming {
  const { reads, door, subscriptions } = ports
  const lanes = new Map<string, Lane>()

  function laneOf(endpoint: string): Lane {
    const known = lanes.get(endpoint)
    if (known !== undefined) return known
    const lane = { endpoint, waiting: count(endpoint), told: 0, isDropping: false, consumer: undefined }
    lanes.set(endpoint, lane)
    return lane
  }
  const count = (endpoint: string): number => reads.backlog(endpoint, []).count

  /** Tells what there is, as long as the consumer takes it. */
  function pump(lane: Lane): void {
    const active = lane.consumer
    while (active !== undefined && active === lane.consumer && !active.isFull) {
      const span = { endpoint: lane.endpoint, after: active.cursor, count: readCount }
      const rows = reads.next(span, limits.deliveriesWindowBytes.value)
      if (rows.length === 0) return
      for (let from = 0; from < rows.length; ) {
        if (active.isFull || active !== lane.consumer) return
        const shared = sharing(rows, from)
        // More of this batch may follow: it is read again from its first row.
        if (from > 0 && shared.length > 1 && from + shared.length === rows.length) break
        from += write(lane, active, shared)
      }
    }
  }

  /** Writes one notification and returns how many of the rows it holds. */
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
    if (last.d <= lane.told) return numbers.length
    lane.told = last.d
    ports.sent.value++
    subscriptions.outcome(last.sub, { ok: true, at: ports.clock.now() })
    return numbers.length
  }

  /** Their rows go at leisure; until then they may be read again, which a consumer has to expect anyway. */
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
    start() {
      for (const endpoint of reads.endpoints()) if (isStreamed(endpoint)) dropOldest(laneOf(endpoint))
    },
    committed(deliveries) {
      const touched = new Set<Lane>()
      for (const { endpoint } of deliveries) {
        const known = lanes.get(endpoint)
        const lane = known ?? laneOf(endpoint)
        // A new lane has counted its rows already, these among them.
        if (known !== undefined && !touched.has(lane)) lane.waiting += countOf(deliveries, endpoint)
        touched.add(lane)
      }
      for (const lane of touched) {
        dropOldest(lane)
        pump(lane)
      }
    },
    reread(endpoint) {
      const lane = lanes.get(endpoint)
      if (lane === undefined) return
      lane.waiting = count(endpoint)
      // The subscription is gone, or speaks elsewhere now.
      lane.consumer?.consumer.close()
      if (lane.waiting === 0) lanes.delete(endpoint)
    },
    listen(endpoint, consumer) {
      const lane = laneOf(endpoint)
      lane.consumer?.consumer.close()
      const active: Active = { consumer, cursor: 0, isFull: false }
      lane.consumer = active
      // Whoever listens gets its handle first.
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
    async confirm(endpoint, eventId) {
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
    waiting: () => [...lanes.values()].reduce((sum, lane) => sum + lane.waiting, 0),
    close() {
      for (const { consumer } of lanes.values()) consumer?.consumer.close()
    },
  } satisfies Streaming)
}

/** Whether consumers come for what is owed there. */
export const isStreamed = (endpoint: string): boolean => endpoint.startsWith(streamUri)

/** The rows from `from` on that share a notification: of one batch, each of another entity. */
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

/** Numbers of deliveries may come again after a restart; with their commit time they do not. */
const eventIdOf = ({ at, d }: Delivery): string => `${at}-${d}`

function parseEventId(text: string): [at: number, d: number] {
  const found = /^(\d{1,15})-(\d{1,15})$/.exec(text)
  if (found === null) {
    throw new GatewayError('ngsi-ld.bad-request-data', `${text} is no id of a notification told before`)
  }
  return [Number(found[1]), Number(found[2])]
}
