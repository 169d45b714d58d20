/**
 * What a gateway shows of its data, by public ports only: entities and their history by HTTP, retained messages and
 * a session's queue by MQTT. Every function fails when the gateway dies meanwhile; nothing here knows what ought
 * to be.
 */
import { AssertionError } from 'node:assert'
import { connectRaw, type RawClient, subscribePacket } from '#test/kit/mqtt.ts'
import type { Content } from './ledger.ts'
import { pause } from './publishers.ts'

export interface Instance {
  readonly value: unknown
  readonly atMs: number
}

/** An answer holds at most 10,000 instances; a stream has two in 10 ms at most. */
const windowMs = 40_000

/** All instances of an attribute with fromMs <= observedAt < toMs, as the gateway tells them. */
export async function historyOf(
  url: string,
  { entity, attribute }: { entity: string; attribute: string },
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<Instance[]> {
  const found: Instance[] = []
  for (let from = fromMs; from < toMs; from += windowMs) {
    const parameters = new URLSearchParams({
      attrs: attribute,
      timerel: 'between',
      timeAt: new Date(from).toISOString(),
      endTimeAt: new Date(Math.min(toMs, from + windowMs)).toISOString(),
      options: 'temporalValues',
    })
    const answer = await get(url, `/ngsi-ld/v1/temporal/entities/${entity}?${parameters}`)
    if (answer === null) continue
    const { values = [] } = (answer[attribute] ?? {}) as { values?: [unknown, string][] }
    found.push(...values.map(([value, at]) => ({ value, atMs: Date.parse(at) })))
  }
  return found
}

export async function currentOf(
  url: string,
  { entity, attribute }: { entity: string; attribute: string },
): Promise<Instance | undefined> {
  const answer = await get(url, `/ngsi-ld/v1/entities/${entity}`)
  const instance = answer?.[attribute] as { value: unknown; observedAt: string } | undefined
  return instance === undefined ? undefined : { value: instance.value, atMs: Date.parse(instance.observedAt) }
}

/** The attributes of an entity as key-values; null when there is no such entity. */
export async function contentOf(url: string, id: string): Promise<Content> {
  const answer = await get(url, `/ngsi-ld/v1/entities/${id}?options=keyValues`)
  if (answer === null) return null
  const { id: _id, type: _type, ...content } = answer
  return content
}

async function get(url: string, path: string): Promise<Record<string, unknown> | null> {
  const answer = await fetch(url + path)
  const text = await answer.text()
  if (answer.status === 404) return null
  if (answer.status !== 200) {
    throw new AssertionError({ message: `GET ${path} was answered with ${answer.status}: ${text}` })
  }
  return JSON.parse(text) as Record<string, unknown>
}

/** Retained messages below a filter, by topic; they may take a moment to come. */
export async function retainedAt(
  port: number,
  filter: string,
  isAll: (found: ReadonlyMap<string, string>) => boolean,
  patienceMs: number,
): Promise<Map<string, string>> {
  const client = await connectRaw(port, 'onlooker')
  const found = new Map<string, string>()
  client.send(subscribePacket(1, [filter, 1]))
  const deadline = performance.now() + patienceMs
  do {
    client.send({ cmd: 'pingreq' })
    await taking(client, 'pingresp', (topic, payload) => void found.set(topic, payload))
    await pause(10)
  } while (!isAll(found) && performance.now() < deadline)
  client.end()
  return found
}

export const sessionClient = 'absent'

/** Subscribes as a client that wants its messages kept, and leaves. */
export async function openSession(port: number, filter: string): Promise<void> {
  const client = await connectRaw(port, sessionClient, { clean: false })
  client.send(subscribePacket(1, [filter, 1]))
  await client.next()
  client.send({ cmd: 'disconnect' })
  await client.ended
}

/** Receives and acknowledges the messages queued for the session, and disconnects. False when the session is gone. */
export async function drainSession(
  port: number,
  take: (topic: string, payload: string) => void,
  isAll: () => boolean,
  patienceMs: number,
): Promise<boolean> {
  const client = await connectRaw(port, sessionClient, { clean: false })
  if (!client.connack.sessionPresent) {
    client.end()
    return false
  }
  const deadline = performance.now() + patienceMs
  for (let isQuiet = false; !(isQuiet && isAll()) && performance.now() < deadline; await pause(10)) {
    isQuiet = true
    client.send({ cmd: 'pingreq' })
    await taking(client, 'pingresp', (topic, payload) => {
      isQuiet = false
      take(topic, payload)
    })
  }
  client.send({ cmd: 'disconnect' })
  await client.ended
  return true
}

/** Takes and acknowledges messages until a packet of this kind comes. */
async function taking(
  client: RawClient,
  last: 'pingresp',
  take: (topic: string, payload: string) => void,
): Promise<void> {
  for (;;) {
    const packet = await client.next()
    if (packet.cmd === last) return
    if (packet.cmd !== 'publish') continue
    take(packet.topic, packet.payload.toString())
    if (packet.qos === 1) client.send({ cmd: 'puback', messageId: packet.messageId! })
  }
}
