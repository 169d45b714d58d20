/**
 * Notifications that clients fetch, one stream for each client of a subscription. Sending confirms nothing: a
 * new connection gets all notifications again that its client has not confirmed, oldest first, and replaces
 * the former connection. Beyond the ceiling of a stream its oldest are given up and counted.
 */
import { limits } from '#base/limits/limits.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { NotificationOutbox } from './notification-outbox.ts'

export interface StreamedNotification {
  /** Increases with each notification. */
  readonly id: string
  /** JSON as received. */
  readonly body: string
}

/** A connection of a client. */
export interface StreamConsumer {
  /** Returns false when it has no room for more; `ready` continues. */
  write(notification: StreamedNotification): boolean
  close(): void
}

interface OpenStream {
  readonly consumer: StreamConsumer
  sentTo: number
  isFull: boolean
}

/** Name of the lane of a client. */
export const streamLaneOf = (client: string): string => `client ${client}`

export interface ClientStreamsPorts {
  readonly outbox: Pick<
    NotificationOutbox,
    'next' | 'through' | 'advance' | 'contains' | 'beyond' | 'countOf'
  >
  readonly clientsOf: (id: string) => Iterable<string>
  readonly givenUp: (count: number) => void
}

export type ClientStreams = ReturnType<typeof createClientStreams>

export function createClientStreams({ outbox, clientsOf, givenUp }: ClientStreamsPorts) {
  const open = new Map<string, OpenStream>()
  const arrivals = new Map<string, number>()
  const keyOf = (id: string, client: string): string => `${id}\n${client}`

  function pump(id: string, client: string): void {
    const stream = open.get(keyOf(id, client))
    const lane = streamLaneOf(client)
    while (stream !== undefined && !stream.isFull && open.get(keyOf(id, client)) === stream) {
      const after = Math.max(stream.sentTo, outbox.through(id, lane) ?? Number.MAX_SAFE_INTEGER)
      const rows = outbox.next(id, after, limits.orchestratorReadPage.value)
      for (const { n, body } of rows) {
        if (stream.isFull) return
        // `write` may call `ready`, which sends the next ones.
        if (n <= stream.sentTo) continue
        stream.sentTo = n
        stream.isFull = !stream.consumer.write({ id: `${n}`, body: body.toString() })
      }
      if (rows.length === 0) return
    }
  }

  /** Gives up the oldest beyond the ceiling of a stream. It is checked with every hundredth notification. */
  function bound(id: string): void {
    const count = (arrivals.get(id) ?? 0) + 1
    arrivals.set(id, count % 100)
    if (count % 100 !== 0) return
    const newest = outbox.beyond(id, limits.orchestratorStreamMax.value)
    if (newest === undefined) return
    for (const client of clientsOf(id)) {
      const lane = streamLaneOf(client)
      const through = outbox.through(id, lane)
      if (through === undefined || through >= newest) continue
      givenUp(outbox.countOf(id, through, newest))
      outbox.advance(id, lane, newest)
    }
  }

  return Object.freeze({
    /** Connects a client; its unconfirmed notifications follow. */
    listen(id: string, client: string, consumer: StreamConsumer) {
      const key = keyOf(id, client)
      open.get(key)?.consumer.close()
      const stream = { consumer, sentTo: 0, isFull: false }
      open.set(key, stream)
      // The caller receives its functions before the first notification.
      setImmediate(() => pump(id, client))
      return Object.freeze({
        ready(): void {
          stream.isFull = false
          if (open.get(key) === stream) pump(id, client)
        },
        end(): void {
          if (open.get(key) === stream) open.delete(key)
        },
      })
    },
    /**
     * Confirms all notifications up to one. An id that is not waiting confirms nothing: it was confirmed
     * before, or is of another subscription or another database.
     * @throws ngsi-ld.bad-request-data for an invalid id.
     */
    confirm(id: string, client: string, until: string): void {
      if (!/^\d{1,15}$/.test(until))
        throw badRequestData('must be the id of a notification of this stream', 'until')
      if (outbox.contains(id, Number(until))) outbox.advance(id, streamLaneOf(client), Number(until))
    },
    /** New notifications of a subscription can be read. */
    arrived(id: string): void {
      bound(id)
      for (const client of clientsOf(id)) pump(id, client)
    },
    /** Ends the stream of a client. */
    end: (id: string, client: string): void => open.get(keyOf(id, client))?.consumer.close(),
    /** A subscription ended. */
    forget: (id: string): boolean => arrivals.delete(id),
    count: () => open.size,
    close(): void {
      for (const { consumer } of [...open.values()]) consumer.close()
    },
  })
}
