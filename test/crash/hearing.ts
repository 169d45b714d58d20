/**
 * The hearing after a restart: gathers evidence about a site and has it judged. Without `isAll` it looks at what is
 * new since the last hearing; what it has judged it marks as settled.
 */
import { AssertionError } from 'node:assert'
import type { GatewayProcess } from '#test/kit/process.ts'
import { contentOf, currentOf, drainSession, historyOf, retainedAt } from './evidence.ts'
import {
  type Complaint,
  judgeCurrent,
  judgeEntity,
  judgeHistory,
  judgeNotified,
  judgeRetained,
  judgeSession,
} from './judge.ts'
import { nextValue, type Stream, settle, windowOf } from './ledger.ts'
import { pause } from './publishers.ts'
import { firstFresh, freshStreams, retainedFilter, type Site } from './site.ts'

const atOnce = 8

export interface Scope {
  /** From the first message on, not only what is new. */
  readonly isAll: boolean
  /** How long evidence is waited for that arrives later. */
  readonly patienceMs?: number
}

/** Rejects when the gateway dies meanwhile; nothing is settled then. */
export async function judgeSite(site: Site, gateway: GatewayProcess, scope: Scope): Promise<Complaint[]> {
  const { ledger } = site
  const { isAll, patienceMs = 100_000 } = scope
  const streams = isAll ? [...ledger.streams.values()] : freshStreams(site)
  const from = (one: Parameters<typeof firstFresh>[0]): number => (isAll ? 0 : firstFresh(one))
  const complaints: Complaint[] = []

  await each(streams, async (stream) => {
    complaints.push(...(await judgeStream(gateway.httpUrl, stream, from(stream))))
  })
  const entities = [...ledger.entities].filter(([, { isFresh }]) => isAll || isFresh)
  await each(entities, async ([id, expectation]) => {
    complaints.push(...judgeEntity(id, expectation, await contentOf(gateway.httpUrl, id)))
  })
  complaints.push(...(await judgeTopics(site, gateway.mqttPort, patienceMs)))
  complaints.push(...(await judgeQueue(site, gateway.mqttPort, { from, patienceMs })))
  complaints.push(...(await judgeSubscriber(site, gateway, patienceMs)))

  for (const stream of streams) settle(stream)
  for (const topic of ledger.topics) settle(topic)
  for (const [, expectation] of entities) expectation.isFresh = expectation.pending !== undefined
  return complaints
}

async function judgeStream(url: string, stream: Stream, from: number): Promise<Complaint[]> {
  if (stream.messages.length === 0) return []
  const instances = await historyOf(url, stream, windowOf(stream, from, nextValue(stream)))
  return [...judgeHistory(stream, from, instances), ...judgeCurrent(stream, await currentOf(url, stream))]
}

async function judgeTopics({ ledger }: Site, port: number, patienceMs: number): Promise<Complaint[]> {
  const verdict = (seen: ReadonlyMap<string, string>): Complaint[] =>
    ledger.topics
      .filter(({ retain }) => retain)
      .flatMap((topic) => judgeRetained(topic, seen.get(topic.name)))
  return verdict(await retainedAt(port, retainedFilter, (seen) => verdict(seen).length === 0, patienceMs))
}

async function judgeQueue(
  { ledger, kept }: Site,
  port: number,
  { from, patienceMs }: { from: (topic: Parameters<typeof firstFresh>[0]) => number; patienceMs: number },
): Promise<Complaint[]> {
  const topics = ledger.topics.filter(({ retain }) => !retain)
  const verdict = (): Complaint[] =>
    topics.flatMap((topic) => judgeSession(topic, from(topic), kept.get(topic.name) ?? []))
  const isThere = await drainSession(
    port,
    (topic, payload) => {
      const payloads = kept.get(topic)
      if (payloads === undefined) kept.set(topic, [payload])
      else payloads.push(payload)
    },
    () => verdict().every(({ fault }) => fault !== 'lost'),
    patienceMs,
  )
  return isThere ? verdict() : [{ fault: 'lost', text: 'the persistent session is gone' }]
}

/** Waits until the subscriber, if it is there, was told everything; a while without that is a loss. */
async function judgeSubscriber(
  { ledger, told, subscriber }: Site,
  gateway: GatewayProcess,
  patienceMs: number,
): Promise<Complaint[]> {
  const verdict = (): Complaint[] =>
    [...ledger.streams.values()].flatMap((stream) => judgeNotified(stream, 0, told.get(stream.entity) ?? []))
  let isDead = false
  void gateway.exited.then(() => {
    isDead = true
  })
  const deadline = performance.now() + patienceMs
  for (;;) {
    const complaints = verdict()
    if (complaints.every(({ fault }) => fault !== 'lost')) return complaints
    if (!subscriber.isUp) return complaints.filter(({ fault }) => fault !== 'lost')
    if (isDead) throw new AssertionError({ message: 'the gateway died before it had told everything' })
    if (performance.now() > deadline) return complaints
    await pause(50)
  }
}

/** A few at a time, in order. */
async function each<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const left = items[Symbol.iterator]()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const item of left) await act(item)
    }),
  )
}
