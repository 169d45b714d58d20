/**
 * A site under fire: everything outside the gateway during a campaign. Ten MQTT publishers, a herald of retained
 * and kept messages, four HTTP writers, an absent session, a subscriber that is away part of the time, and the
 * ledger of what each was promised. It outlives every gateway process.
 */

import type { GatewayProcess } from '#test/kit/process.ts'
import { createReceiver, type Received } from '#test/kit/receiver.ts'
import { openSession } from './evidence.ts'
import {
  createStream,
  type Ledger,
  nextValue,
  type Stream,
  simpleResult,
  type Topic,
  unacknowledged,
} from './ledger.ts'
import { device, herald, type Publisher, publish } from './publishers.ts'
import {
  changer,
  controllerId,
  draft,
  meter,
  meterId,
  operator,
  registrar,
  type Writer,
  write,
} from './writers.ts'

/** How much traffic there is: pauses are multiplied by it. */
export interface Pace {
  readonly slowness: number
  /** Characters that each write of the operator brings along. */
  readonly textLength: number
}

export interface Site {
  readonly ledger: Ledger
  /** What the subscriber was told, by entity, in order of arrival. */
  readonly told: Map<string, number[]>
  /** What came to the absent session, by topic, in order of arrival. */
  readonly kept: Map<string, string[]>
  readonly subscriber: { readonly isUp: boolean; set(isUp: boolean): Promise<void> }
  /** Makes what must be there before the first kill. */
  settle(gateway: GatewayProcess): Promise<void>
  /** Traffic until the gateway is gone or `stop` settles; a new device turns up each time. */
  live(gateway: GatewayProcess, pace: Pace, stop: Promise<void>): Promise<void>
  close(): Promise<void>
}

const regularDevices = 7
const streamObservation = 'http://purl.org/iot/ontology/iot-stream#StreamObservation'
export const retainedFilter = 'note/#'

export async function createSite(name: string): Promise<Site> {
  const receiver = await createReceiver()
  const startedMs = Date.now() - 86_400_000
  const ledger: Ledger = {
    streams: new Map(),
    topics: ['note/a', 'note/b', 'note/c', 'queued/a', 'queued/b'].map(
      (topic): Topic => ({ name: topic, retain: topic.startsWith('note'), messages: [], settled: 0 }),
    ),
    entities: new Map(),
    writes: 0,
    oddities: [],
  }
  const told = new Map<string, number[]>()
  const kept = new Map<string, string[]>()
  const hear = ({ body }: Received): number => {
    for (const { entity, value } of toldBy(body)) {
      const values = told.get(entity)
      if (values === undefined) told.set(entity, [value])
      else values.push(value)
    }
    receiver.forget()
    return 204
  }
  receiver.answer(hear)
  let isUp = true
  let newcomers = 0

  const addStream = (
    entity: string,
    attribute: string,
    traits: { isNotified: boolean; hasLate: boolean },
  ): Stream => {
    const stream = createStream(entity, attribute, { baseMs: startedMs, ...traits })
    ledger.streams.set(entity, stream)
    return stream
  }
  const addDevice = (id: string, pace: { count: number; pauseMs: number }, isNotified = true): Publisher => {
    const stream = addStream(`urn:ngsi-ld:StreamObservation:${id}:v`, simpleResult, {
      isNotified,
      hasLate: true,
    })
    return device(stream, { device: id, field: 'v' }, pace)
  }

  const steady: Publisher[] = Array.from({ length: regularDevices }, (_, i) =>
    addDevice(`${name}-${i}`, { count: 1, pauseMs: 200 }),
  )
  // Long tails, so that folding into chunks is under fire, too.
  steady.push(addDevice(`bulk-${name}`, { count: 32, pauseMs: 400 }, false), herald(ledger.topics, 150))
  const level = addStream(meterId, 'level', { isNotified: false, hasLate: false })
  const text = { length: 0 }
  const writers: Writer[] = [
    meter(level, 60),
    registrar(ledger, 90),
    operator(ledger, 60, () => text.length),
    changer(ledger, 60),
  ]
  let latest: Publisher[] = []

  return {
    ledger,
    told,
    kept,
    subscriber: {
      get isUp() {
        return isUp
      },
      async set(next) {
        if (next === isUp) return
        isUp = next
        await (next ? receiver.up() : receiver.down())
      },
    },
    async settle({ httpUrl, mqttPort }) {
      await openSession(mqttPort, 'queued/#')
      await post(`${httpUrl}/ngsi-ld/v1/entities`, draft(meterId, 'Meter', { place: 'cellar' }))
      const initial = { setpoint: 0 }
      await post(`${httpUrl}/ngsi-ld/v1/entities`, draft(controllerId, 'Controller', initial))
      // Its writer may be killed before the first of its writes is carried out.
      ledger.entities.set(controllerId, { acknowledged: initial, pending: undefined, isFresh: true })
      await post(`${httpUrl}/ngsi-ld/v1/subscriptions`, {
        id: 'urn:ngsi-ld:Subscription:crash',
        type: 'Subscription',
        entities: [{ type: streamObservation, idPattern: `^urn:ngsi-ld:StreamObservation:${name}-` }],
        notification: { endpoint: { uri: receiver.url(), accept: 'application/json' } },
      })
    },
    async live(gateway, pace, stop) {
      text.length = pace.textLength
      // Two devices of an age: the one from the life before has messages of unknown outcome among its first.
      latest = [...latest.slice(-1), addDevice(`${name}-new-${++newcomers}`, { count: 1, pauseMs: 200 })]
      const publishers = [...steady, ...latest].map((one) => ({
        ...one,
        pauseMs: one.pauseMs * pace.slowness,
      }))
      const clients = writers.map((one) => ({ ...one, pauseMs: one.pauseMs * pace.slowness }))
      await Promise.all([
        ...publishers.map((one) => publish(gateway.mqttPort, one, stop)),
        ...clients.map((one) => write(gateway.httpUrl, one, ledger, stop)),
      ])
    },
    close: () => receiver.down(),
  }
}

/** Streams whose newest messages were not judged yet. */
export function freshStreams({ ledger }: Site): Stream[] {
  return [...ledger.streams.values()].filter(
    (stream) => stream.settled < stream.messages.length || unacknowledged(stream).length > 0,
  )
}

/** The first value that was not judged yet. */
export function firstFresh(stream: { messages: readonly { first: number }[]; settled: number }): number {
  return stream.messages[stream.settled]?.first ?? nextValue(stream as Stream)
}

async function post(url: string, body: unknown): Promise<void> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (answer.status !== 201)
    throw new TypeError(`${url} was answered with ${answer.status}: ${await answer.text()}`)
}

function toldBy(body: string): { entity: string; value: number }[] {
  const { data } = JSON.parse(body) as { data: { id: string; [simpleResult]?: { value: number } }[] }
  return data.flatMap((entity) => {
    const value = entity[simpleResult]?.value
    return value === undefined ? [] : [{ entity: entity.id, value }]
  })
}
