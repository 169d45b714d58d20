/** What waits while a broker takes no findings: bounded for each stream and for all of them. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { faultTerms } from '#contract/vocabulary.ts'
import type { Judgement, StreamDetector } from '#plugins/faults/detection/stream-detector.ts'
import type { FaultClass, FaultFinding } from '#plugins/faults/rules/finding.ts'
import { runs } from '#test/kit/runs.ts'
import { type FaultStream, type FindingWrite, newRecord } from './fault-stream.ts'
import { createFindingQueue } from './finding-queue.ts'
import { createJudging } from './judging.ts'
import { noMetadata } from './watched-metadata.ts'

const nothing = (): undefined => undefined
const lines: string[] = []
const log = createLog({ level: 'warn', clock: systemClock, write: (line) => void lines.push(line) })
const isKnown = (): boolean => false
const streamOf = (id: string): FaultStream => ({
  id,
  types: [],
  sensorId: id,
  sources: [],
  isDoubtful: false,
  observations: new Set(),
  metadata: noMetadata,
  detector: undefined,
  buffered: [],
  record: newRecord(),
})
const update = (attributes: Record<string, string | number>): FindingWrite => ({
  operation: 'update',
  entity: { id: 'observation', ...attributes },
})
const begun = (id: string): FindingWrite => ({
  operation: 'upsert',
  isFirst: true,
  entity: { id, [faultTerms.begin]: 1 },
})
const ended = (id: string): FindingWrite => ({ operation: 'upsert', entity: { id, [faultTerms.end]: 2 } })

it('keeps the newest value of each attribute of an entity', () => {
  const queue = createFindingQueue({ isKnown, log })
  const stream = streamOf('a')
  const given = [{ verdict: 'faulty' }, { estimate: 1 }, { estimate: 2 }, { verdict: 'ok' }]
  for (const attributes of given) queue.add(stream, update(attributes))
  expect(stream.record.writes).toEqual([update({ verdict: 'ok', estimate: 2 })])
  expect([queue.size(), queue.dropped()]).toEqual([1, 0])
})

it('sends all Faults of a sparse backlog in one request, each with its begin and end', () => {
  const queue = createFindingQueue({ isKnown, log })
  const stream = streamOf('a')
  for (let i = 0; i < 60; i++)
    for (const write of [
      begun(`f${i}`),
      update({ verdict: 'faulty' }),
      ended(`f${i}`),
      update({ verdict: 'ok' }),
    ])
      queue.add(stream, write)
  const sent = queue.send(stream)
  expect(sent).toHaveLength(61)
  expect(sent.filter(({ entity }) => faultTerms.begin in entity && faultTerms.end in entity)).toHaveLength(60)
  expect(queue.dropped()).toBe(0)
})

it('sends the same findings again until they were written, and newer ones of their entities afterwards', () => {
  const queue = createFindingQueue({ isKnown, log })
  const stream = streamOf('a')
  queue.add(stream, begun('f'))
  const sent = queue.send(stream)
  queue.add(stream, ended('f'))
  expect(queue.send(stream)).toEqual(sent)
  queue.remove(stream, sent)
  expect(queue.send(stream)).toEqual([{ ...ended('f'), isSent: true }])
})

it('has a ceiling for a thousand streams together, however long the broker is away', () => {
  const queue = createFindingQueue({ isKnown, log })
  const streams = Array.from({ length: 1000 }, (_, i) => streamOf(String(i)))
  for (let round = 0; round < 100; round++)
    for (const stream of streams) {
      queue.add(stream, update({ estimate: round }))
      queue.add(stream, begun(`${stream.id}-${round}`))
      queue.add(stream, ended(`${stream.id}-${round}`))
    }
  const count = (): number => streams.reduce((sum, { record }) => sum + record.writes.length, 0)
  expect(count()).toBe(limits.faultsWritesAllMax.value)
  expect(queue.size()).toBe(count())
  expect(queue.dropped()).toBe(101_000 - count())
  for (const stream of streams) queue.remove(stream, stream.record.writes.slice(0, 2))
  queue.delete(streams[0]!)
  expect(queue.size()).toBe(count())
})

it('logs once what it drops while a stream cannot be written', () => {
  lines.length = 0
  const queue = createFindingQueue({ isKnown, log, most: { ofStream: 2, ofAll: 100 } })
  const stream = streamOf('a')
  for (const id of ['f1', 'f2', 'f3', 'f4'])
    for (const write of [begun(id), ended(id)]) queue.add(stream, write)
  expect(stream.record.writes.map(({ entity }) => entity.id)).toEqual(['f3', 'f4'])
  expect(queue.dropped()).toBe(2)
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { event: 'faults.dropped', stream: 'a', entity: 'f1', dropped: 1 },
  ])
})

it('takes over what was saved, one write per entity', () => {
  const queue = createFindingQueue({ isKnown, log })
  const stream = streamOf('a')
  stream.record.writes.push(update({ verdict: 'faulty' }), update({ verdict: 'ok' }))
  queue.restore(stream)
  expect(queue.size()).toBe(1)
  queue.remove(stream, queue.send(stream))
  expect(queue.size()).toBe(0)
})

const classes: readonly FaultClass[] = ['spike', 'noise', 'drift', 'dropout']
type Step =
  | { readonly does: 'begin' | 'end'; readonly of: FaultClass; readonly kind: FaultFinding['kind'] }
  | { readonly does: 'write' | 'fail' | 'lose' | 'restart' }
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      does: fc.constantFrom('begin' as const, 'end' as const),
      of: fc.constantFrom(...classes),
      kind: fc.constantFrom('anomaly' as const, 'definite' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constantFrom('write' as const, 'fail' as const, 'lose' as const, 'restart' as const),
    }),
  },
)

/** A stream whose findings a script decides, and a broker that holds what it was sent. */
function scripted(ofStream: number) {
  const entities = new Map<string, Record<string, unknown>>()
  const over = new Set<string>()
  let stream = streamOf('s')
  let next: Judgement | undefined
  const detector = { take: () => next!, intervalMs: () => 1 } as unknown as StreamDetector
  const begin = () => {
    const queue = createFindingQueue({ isKnown, log, most: { ofStream, ofAll: 100 } })
    const ports = { neighbours: { estimate: nothing, learn: nothing }, queue, log }
    const calls = { judged: nothing, found: nothing, entered: nothing, failed: nothing }
    stream = { ...streamOf('s'), detector, record: JSON.parse(JSON.stringify(stream.record)) }
    queue.restore(stream)
    return { queue, judging: createJudging({ ...ports, ...calls }) }
  }
  let { queue, judging } = begin()
  const running = new Map<FaultClass, FaultFinding>()
  let time = 0

  function judge(finding: FaultFinding): void {
    const isOver = finding.end !== undefined
    if (isOver) running.delete(finding.class)
    else running.set(finding.class, finding)
    const isFaulty = running.size > 0
    next = {
      begun: isOver ? [] : [finding],
      ended: isOver ? [finding] : [],
      state: isFaulty ? 'fault' : 'normal',
      verdict: isFaulty ? 'faulty' : 'ok',
      likelihood: 0,
    }
    const before = stream.record.open
      .filter((one) => one.class === finding.class && one.begin === finding.begin)
      .map(({ id }) => id)
    judging.take(stream, { time, value: time, observation: 'o', committedAt: time })
    if (isOver) for (const id of before) over.add(id)
  }

  /** The broker applies the writes, unless it fails; its response may be lost. */
  function write(isApplied: boolean, isAnswered: boolean): void {
    const sent = queue.send(stream)
    for (const { entity } of isApplied ? sent : [])
      entities.set(entity.id, { ...entities.get(entity.id), ...entity })
    if (isApplied && isAnswered) queue.remove(stream, sent)
  }

  return {
    entities,
    over,
    waiting: () => stream.record.writes.length,
    run(one: Step): void {
      time++
      if (one.does === 'begin' || one.does === 'end') {
        const known = running.get(one.of)
        const found = { class: one.of, likelihood: 1, method: 'm' }
        if (one.does === 'begin') judge({ ...found, kind: one.kind, begin: known?.begin ?? time })
        else if (known !== undefined) judge({ ...known, end: time })
      } else if (one.does === 'restart') ({ queue, judging } = begin())
      else write(one.does !== 'fail', one.does === 'write')
    },
  }
}

it('writes each Fault from its begin to its end or not at all, whatever is dropped or repeated', () => {
  let droppedFaults = 0
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), fc.integer({ min: 1, max: 6 }), (steps, ofStream) => {
      const { entities, over, waiting, run } = scripted(ofStream)
      for (const one of steps) {
        run(one)
        expect(waiting()).toBeLessThanOrEqual(ofStream + classes.length)
      }
      while (waiting() > 0) run({ does: 'write' })
      const faults = [...entities].filter(([id]) => id.startsWith('urn:ngsi-ld:Fault:'))
      for (const [id, entity] of faults) {
        expect(entity).toHaveProperty([faultTerms.class])
        expect(entity).toHaveProperty([faultTerms.begin])
        expect(faultTerms.end in entity).toBe(over.has(id))
      }
      droppedFaults += [...over].filter((id) => !entities.has(id)).length
    }),
    { numRuns: runs(200) },
  )
  expect(droppedFaults).toBeGreaterThan(0)
})
