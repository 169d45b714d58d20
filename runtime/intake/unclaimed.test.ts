/** Topics that no bridge reads: one log line per topic, and at most one per second in a flood. */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import type { Frame } from '#contract'
import { createUnclaimed } from './unclaimed.ts'

const frame = (topic: string, payload = '1'): Frame => ({
  topic,
  receivedAt: 0,
  retained: false,
  transport: 'mqtt',
  source: 'client',
  payload: Buffer.from(payload),
})

function open() {
  const lines: Record<string, unknown>[] = []
  let now = 0
  const warn = (event: string, facts?: Record<string, unknown>): void => void lines.push({ event, ...facts })
  const unclaimed = createUnclaimed({
    readerOf: ({ topic }) => (topic.startsWith('json') ? 'json' : undefined),
    monotonic: () => now,
    log: { debug: warn, info: warn, warn, error: warn } satisfies Log,
    metrics: createMetrics(),
  })
  return { unclaimed, lines, pass: (ms: number) => (now += ms) }
}

it('logs one line when a topic is first seen', () => {
  const { unclaimed, lines } = open()
  for (const topic of ['json/a', 'b', 'json/a', 'b']) unclaimed.note(frame(topic))
  expect(lines).toEqual([
    { event: 'intake.unclaimed', topic: 'json/a', source: 'client', readableBy: 'json' },
    { event: 'intake.unclaimed', topic: 'b', source: 'client', readableBy: undefined },
  ])
})

it('logs a line per second in a flood of topics, with the number of omitted lines', () => {
  const { unclaimed, lines, pass } = open()
  for (let at = 0; at < 1000; at++) unclaimed.note(frame(`t/${at}`))
  expect(lines).toHaveLength(100)
  pass(1000)
  for (const topic of ['u/1', 'u/2']) unclaimed.note(frame(topic))
  expect(lines.slice(100)).toEqual([expect.objectContaining({ topic: 'u/1', omitted: 900 })])
  expect(unclaimed.all()).toHaveLength(256)
})

it('drops the topic silent for longest', () => {
  const { unclaimed } = open()
  for (let at = 0; at < limits.unclaimedTopicsMax.value; at++) unclaimed.note(frame(`t/${at}`))
  for (const topic of ['t/0', 'new']) unclaimed.note(frame(topic))
  expect(['t/0', 't/1', 'new'].map((topic) => unclaimed.get(topic)?.count)).toEqual([2, undefined, 1])
})

it('keeps a copy of the payload, and only the beginning of a large one', () => {
  const { unclaimed } = open()
  const one = frame('a', 'x'.repeat(300 * 1024))
  unclaimed.note(one)
  one.payload.fill(0)
  const { lastBytes, lastPayload, frames } = unclaimed.get('a')!
  expect([lastBytes, Buffer.from(lastPayload).toString(), frames]).toEqual([300 * 1024, 'x'.repeat(256), []])
})

it('holds the newest frames of a topic', () => {
  const { unclaimed } = open()
  for (let at = 0; at < 300; at++) unclaimed.note(frame('a', String(at)))
  const { count, frames } = unclaimed.get('a')!
  expect([count, frames.length, String(frames.at(0)!.payload), String(frames.at(-1)!.payload)]).toEqual([
    300,
    200,
    '49,48,48',
    '50,57,57',
  ])
})
