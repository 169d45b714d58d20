/**
 * The MQTT side of the traffic: clients with a window of QoS 1 messages that keep sending, and that after a lost
 * connection begin with what was not acknowledged, as devices do. A message is acknowledged by its PUBACK only.
 */
import { AssertionError } from 'node:assert'
import { connectRaw, publishPacket, type RawClient } from '#test/kit/mqtt.ts'
import { type Message, type Sent, type Stream, send, type Topic, unacknowledged } from './ledger.ts'

/** Messages in flight per client. */
const windowSize = 8

/** One client: whose messages, and how they look on the wire. */
export interface Publisher {
  readonly client: string
  /** Taken in turn. */
  readonly sources: readonly Sent[]
  /** Values per message. */
  readonly count: number
  readonly pauseMs: number
  publication(source: Sent, message: Message): { topic: string; payload: string; retain: boolean }
}

/** A device that tells its stream as SenML packs. */
export function device(
  stream: Stream,
  name: { device: string; field: string },
  pace: { count: number; pauseMs: number },
): Publisher {
  return {
    client: name.device,
    sources: [stream],
    ...pace,
    publication(_source, { first, count }) {
      const records = Array.from({ length: count }, (_, i) => ({
        ...(i === 0 ? { bn: `${name.device}:` } : {}),
        n: name.field,
        u: 'Cel',
        v: first + i,
        t: stream.timeOf(first + i) / 1000,
      }))
      return { topic: `senml/${name.device}`, payload: JSON.stringify(records), retain: false }
    },
  }
}

/** One client for topics that mean nothing to the gateway but are retained, or queued for a session. */
export function herald(topics: readonly Topic[], pauseMs: number): Publisher {
  return {
    client: 'herald',
    sources: topics,
    count: 1,
    pauseMs,
    publication(source, { first }) {
      const { name, retain } = source as Topic
      return { topic: name, payload: topicPayload(retain, first), retain }
    },
  }
}

/** Every seventh retained message clears its topic. */
export const topicPayload = (retain: boolean, value: number): string =>
  retain && value % 7 === 6 ? '' : String(value)

/** Sends until the connection ends or `stop` settles. Rejects only when the broker says something odd. */
export async function publish(port: number, publisher: Publisher, stop: Promise<void>): Promise<void> {
  let isStopped = false
  const client = await connectRaw(port, publisher.client).catch(() => undefined)
  if (client === undefined) return
  const ending = Promise.race([stop, client.ended]).then(() => {
    isStopped = true
  })
  const flight = new Map<number, Message>()
  let lastId = 0
  let turn = 0
  const put = (source: Sent, message: Message, dup: boolean): void => {
    const { topic, payload, retain } = publisher.publication(source, message)
    lastId = (lastId % 65_535) + 1
    flight.set(lastId, message)
    client.send(publishPacket(topic, payload, { qos: 1, retain, dup, messageId: lastId }))
  }
  const reading = readAcknowledgements(client, flight)
  for (const source of publisher.sources) {
    for (const message of unacknowledged(source)) put(source, message, true)
  }
  while (!isStopped) {
    while (flight.size < windowSize && !isStopped) {
      const source = publisher.sources[turn++ % publisher.sources.length]!
      put(source, send(source, publisher.count), false)
    }
    await Promise.race([ending, pause(publisher.pauseMs)])
  }
  client.end()
  await reading
}

async function readAcknowledgements(client: RawClient, flight: Map<number, Message>): Promise<void> {
  for (;;) {
    const packet = await client.next(patienceMs).catch(() => undefined)
    if (packet === undefined) return
    const message = flight.get(packet.messageId ?? 0)
    if (packet.cmd !== 'puback' || message === undefined) {
      throw new AssertionError({ message: `${packet.cmd} ${packet.messageId} answers nothing` })
    }
    flight.delete(packet.messageId!)
    message.acknowledged = true
  }
}

const patienceMs = 600_000

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
