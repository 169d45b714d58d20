/**
 * What a gateway shows of its data, by public ports only: entities and their history by HTTP, retained messages and
 * a session's queue by MQTT. Every function fails when the gateway dies meanwhile; nothing here knows what ought
 * to be.
 */
import { AssertionError } from 'node:assert'
import { connectRaw, type RawClient, subscribePacket } from '#test/kit/mqtt.ts'
import { type Content, nextValue, type Stream, type Topic, windowOf } from './ledger.ts'

export interface Instance {
  readonly value: unknown
  readonly atMs: number
}

export interface SeenStream {
  /** In the order in which the gateway gives them. */
  readonly instances: readonly Instance[]
  readonly current: Instance | undefined
}

/** Values of one window at a time, so that no answer is cut off. */
const windowValues = 5000

export async function seeStream(url: string, stream: Stream, from: number): Promise<SeenStream> {
  const end = nextValue(stream)
  const instances = new Map<string, Instance[]>()
  for (let first = from; first < end; first += windowValues) {
    const { fromMs, toMs } = windowOf(stream, first, Math.min(end, first + windowValues))
    // Windows overlap by what may be late; each answer is whole, so the later one holds nothing less.
    for (const instance of await history(url, stream, fromMs, toMs)) {
      const key = `${first} ${instance.atMs}`
      instances.set(key, [...(instances.get(key) ?? []), instance])
    }
  }
  return { instances: withoutOverlap([...instances.values()].flat()), current: await currentOf(url, stream) }
}
