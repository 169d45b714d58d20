/**
 * One message broker that streams name as their source: its connection, the streams of each of its places,
 * and what an operator should know of it.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { SourceBroker, SourceConnection, SourceMessage, SourcePlace, SourcesPort } from '#contract'
import type { Stream } from '#plugins/quality/streams/stream.ts'
import type { AccessDetails } from './access-details.ts'

/** A stream and where its values come from. */
export interface StreamRoute {
  readonly stream: Stream
  readonly access: AccessDetails
}

export interface SourcePorts {
  readonly port: SourcesPort
  readonly clock: Clock
  readonly log: Log
  /** Digests of messages that an earlier process stored. */
  readonly digests: readonly string[]
  message(source: MessageSource, message: SourceMessage, acknowledge: () => void): void
}

export interface FollowedSource {
  readonly address: string
  /** Replaces the routes. Returns the number of routes beyond the limit of places. */
  route(routes: readonly StreamRoute[]): number
  status(): object
  readonly complaint: () => string | undefined
  /** Disconnects; the broker keeps messages for the next connection. */
  close(): Promise<void>
  /** Gives up its places at the broker and disconnects. */
  end(): Promise<void>
}

export interface MessageSource extends FollowedSource {
  readonly counts: { messages: number; observations: number; repeated: number; unreadable: number }
  routesOf(places: readonly SourcePlace[]): readonly StreamRoute[]
  /** Notes why a message has no observation of a stream. */
  noteUnreadable(reason: string): void
  /** Whether a message with this digest is among the newest that were stored. */
  knows(digest: string): boolean
  learn(digest: string): void
}

export function createSource(
  { port, clock, log, digests, message }: SourcePorts,
  broker: SourceBroker,
): MessageSource {
  const { url: address } = broker
  const known = new Set(digests)
  const counts = { messages: 0, observations: 0, repeated: 0, unreadable: 0 }
  let routes = new Map<string, StreamRoute[]>()
  let places: readonly SourcePlace[] = []
  let streams = 0
  let failures = 0
  let reason: string | undefined
  let unreadableBecause: string | undefined
  let lastMessageAt: number | undefined
  let hasTried = false
  let isReported = false
  let isClosed = false
  let retryTimer: NodeJS.Timeout | undefined
  let connection: SourceConnection | undefined

  /** The first attempt may come before a broker of this gateway listens: its failure is not reported. */
  function fail(problem: string): void {
    if (hasTried) report(problem)
    hasTried = true
    failures++
    reason = problem
  }

  /** Reports once until the source is connected again. */
  function report(problem: string): void {
    if (!isReported) log.warn('quality.source-unreachable', { source: address, reason: problem })
    isReported = true
  }

  /** Opens the connection; a file that cannot be read is tried again. */
  const openConnection = (): Promise<void> =>
    port
      .open(broker, {
        message(one, acknowledge) {
          counts.messages++
          lastMessageAt = clock.now()
          message(source, one, acknowledge)
        },
        connected() {
          reason = undefined
          hasTried = true
          isReported = false
          log.info('quality.source-connected', { source: address })
        },
        lost: () => fail('the connection was lost'),
        refused: fail,
      })
      .then((opened) => {
        connection = opened
        if (!isClosed) opened.follow(places)
      })
      .catch((error: unknown) => {
        fail((error as Error).message)
        if (isClosed) return
        report((error as Error).message)
        retryTimer = setTimeout(() => {
          opening = openConnection()
        }, limits.bridgeRetryMsMax.value)
      })
  let opening = openConnection()

  async function close(): Promise<void> {
    isClosed = true
    clearTimeout(retryTimer)
    await opening
    await connection?.close()
  }

  const source: MessageSource = Object.freeze({
    address,
    counts,
    route(wanted) {
      const next = new Map<string, StreamRoute[]>()
      let left = 0
      for (const one of wanted) {
        const key = JSON.stringify(one.access.place)
        const others = next.get(key)
        if (others !== undefined) others.push(one)
        else if (next.size < limits.qualitySourcePlacesMax.value) next.set(key, [one])
        else left++
      }
      routes = next
      streams = wanted.length - left
      places = [...next.values()].map(([first]) => first!.access.place as SourcePlace)
      connection?.follow(places)
      return left
    },
    routesOf: (of) => of.flatMap((place) => routes.get(JSON.stringify(place)) ?? []),
    noteUnreadable(why) {
      counts.unreadable++
      unreadableBecause = why
    },
    knows: (digest) => known.has(digest),
    learn(digest) {
      known.delete(digest)
      known.add(digest)
      if (known.size > limits.qualitySourceDigests.value) known.delete(known.values().next().value!)
    },
    status: () => ({
      source: address,
      state: connection?.isConnected() === true ? 'connected' : 'unreachable',
      streams,
      places: places.length,
      ...counts,
      failures,
      lastMessageAt: lastMessageAt === undefined ? null : new Date(lastMessageAt).toISOString(),
      reason,
      unreadableBecause,
    }),
    complaint: () => (isReported ? `the source ${address} is unreachable: ${reason}` : undefined),
    close,
    async end() {
      connection?.follow([])
      await close()
    },
  } satisfies MessageSource)
  return source
}
