/**
 * A stream that falls silent, on a clock that the test moves: the dropout, and the estimates of its missing
 * samples.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { defaultDetectionSettings } from '#plugins/faults/detection/detection-settings.ts'
import { createStreamDetector } from '#plugins/faults/detection/stream-detector.ts'
import { type FaultStream, newRecord } from './fault-stream.ts'
import { createFindingQueue } from './finding-queue.ts'
import { createJudging } from './judging.ts'
import { addDowntime } from './missed-span.ts'
import { createNeighbourhood } from './neighbourhood.ts'
import { createOverdue } from './overdue.ts'

const minute = 60_000
const log = createLog({ level: 'error', clock: systemClock, write: () => undefined })
const estimates = 'https://w3id.org/iot/fd/hasEstimatedResult'

let now = 0
beforeEach(() => {
  now = 0
  vi.useFakeTimers()
})
afterEach(() => vi.useRealTimers())

/** Two neighbours with a sample a minute, which differ by 3. */
function site() {
  const neighbours = createNeighbourhood({ radiusMeters: 20_000 })
  const clock = { ...systemClock, now: () => now, monotonic: () => now }
  const judging = createJudging({
    neighbours,
    queue: createFindingQueue({ isKnown: () => false, log }),
    log,
    judged: (stream) => overdue.note(stream),
    found: () => undefined,
    entered: () => undefined,
    failed: () => undefined,
  })
  const overdue = createOverdue({ judging, isBehind: () => false, silenced: () => undefined, clock })
  const [own, other] = ['own', 'other'].map((id, i): FaultStream => {
    const metadata = {
      intervalMs: minute,
      label: 'temperature',
      place: [10, 56 + i / 100] as const,
      isExempt: false,
      isInferred: false,
    }
    const stream: FaultStream = {
      id,
      types: [],
      sensorId: id,
      sources: [],
      isDoubtful: false,
      observations: new Set(),
      metadata,
      detector: createStreamDetector({ intervalMs: minute, settings: defaultDetectionSettings }),
      buffered: [],
      record: newRecord(),
    }
    neighbours.describe(stream)
    return stream
  }) as [FaultStream, FaultStream]

  const valueAt = (time: number): number => 20 + (Math.round(time / minute) % 7)
  function send(stream: FaultStream): void {
    const value = valueAt(now) + (stream === own ? 0 : 3)
    judging.take(stream, { time: now, value, observation: stream.id, committedAt: now })
  }
  function passMinute(senders: readonly FaultStream[]): void {
    for (let tick = 0; tick < 60; tick++) {
      now += minute / 60
      vi.advanceTimersByTime(minute / 60)
    }
    for (const stream of senders) send(stream)
  }
  const written = ({ record }: FaultStream) =>
    record.writes.flatMap(({ entity }) => (entity[estimates] as { value: unknown } | undefined)?.value ?? [])
  return { own, other, overdue, judging, passMinute, valueAt, written }
}

describe('a stream that falls silent', () => {
  it('has an estimate of its neighbours for each missing sample, until it returns', () => {
    const { own, other, passMinute, valueAt, written } = site()
    for (let i = 0; i < 60; i++) passMinute([other, own])
    own.record.writes = []
    for (let i = 0; i < 10; i++) passMinute([other])
    expect(own.record.state).toBe('fault')
    expect(own.record.verdict).toBe('faulty')
    const estimated = own.record.estimate!
    expect(estimated.method).toBe('neighbours')
    expect(estimated.error).toBeLessThan(0.1)
    expect(estimated.value).toBeCloseTo(valueAt(now - minute), 1)
    passMinute([other, own])
    expect(own.record.estimate).toBeUndefined()
    expect(written(own).at(-1)).toBe('N/A')
    const count = own.record.writes.length
    for (let i = 0; i < 5; i++) passMinute([other, own])
    expect(written(own).slice(-1)).toEqual(['N/A'])
    expect(own.record.writes.length).toBeLessThanOrEqual(count + 1)
  })

  it('writes no estimate like the one before', () => {
    const { own, passMinute, written } = site()
    for (let i = 0; i < 60; i++) passMinute([own])
    own.record.writes = []
    for (let i = 0; i < 60; i++) passMinute([])
    expect(own.record.state).toBe('fault')
    expect(written(own)).toEqual([valueOfLast(own)])
  })

  it('is not silent while the gateway is down', () => {
    const { own, overdue, judging, passMinute, valueAt } = site()
    for (let i = 0; i < 60; i++) passMinute([own])
    const from = now
    now += 60 * minute
    addDowntime(own.record, { from, to: now })
    overdue.note(own)
    // Messages that were in flight arrive first.
    for (const i of [1, 2]) {
      const time = from + i * minute
      judging.take(own, { time, value: valueAt(time), observation: own.id, committedAt: now })
    }
    expect(own.record.downMs).toBe(58 * minute)
    passMinute([own])
    expect([own.record.state, own.record.downMs]).toEqual(['normal', 0])
    expect(own.record.writes.filter(({ entity }) => entity.id.includes(':Fault:'))).toEqual([])
  })

  it('is silent after one and a half times the longest pause of a device that sends in bundles', () => {
    const { own, judging, passMinute, valueAt } = site()
    for (let bundle = 0; bundle < 12; bundle++) {
      for (let i = 0; i < 10; i++) passMinute([])
      for (let i = 9; i >= 0; i--) {
        const time = now - i * minute
        judging.take(own, { time, value: valueAt(time), observation: own.id, committedAt: now })
      }
    }
    expect(own.record.state).toBe('normal')
    const minutes = (1.5 * own.record.longestPauseMs) / minute
    // Longer than the silence of three missing samples.
    expect(minutes).toBeGreaterThan(10)
    for (let i = 0; i < Math.floor(minutes); i++) passMinute([])
    expect(own.record.state).toBe('normal')
    passMinute([])
    expect([own.record.state, own.record.open[0]?.class]).toEqual(['fault', 'dropout'])
  })

  it('is silent if it stays away after the gateway was down', () => {
    const { own, overdue, passMinute } = site()
    for (let i = 0; i < 60; i++) passMinute([own])
    const from = now
    now += 60 * minute
    addDowntime(own.record, { from, to: now })
    overdue.note(own)
    passMinute([])
    expect(own.record.state).toBe('normal')
    for (let i = 0; i < 4; i++) passMinute([])
    expect(own.record.state).toBe('fault')
    expect(own.record.open).toMatchObject([{ class: 'dropout', begin: from + 61 * minute }])
  })
})

const valueOfLast = ({ record }: FaultStream): number => record.last!.value
