/** The samples of a stream that are judged. */
import { expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { faultTerms } from '#contract/vocabulary.ts'
import { defaultDetectionSettings } from '#plugins/faults/detection/detection-settings.ts'
import { createStreamDetector } from '#plugins/faults/detection/stream-detector.ts'
import { type FaultStream, newRecord } from './fault-stream.ts'
import { createFindingQueue } from './finding-queue.ts'
import { createJudging } from './judging.ts'

const minute = 60_000
const nothing = (): undefined => undefined
const log = createLog({ level: 'error', clock: systemClock, write: nothing })

/** A stream with a sample a minute, and how one is taken. */
function begin() {
  const judging = createJudging({
    neighbours: { estimate: nothing, learn: nothing },
    queue: createFindingQueue({ isKnown: () => false, log }),
    log,
    judged: nothing,
    found: nothing,
    entered: nothing,
    failed: nothing,
  })
  const stream: FaultStream = {
    id: 's',
    types: [],
    sensorId: 's',
    isDoubtful: false,
    sources: [],
    observations: new Set(),
    metadata: { intervalMs: minute, isExempt: false, isInferred: false },
    detector: createStreamDetector({ intervalMs: minute, settings: defaultDetectionSettings }),
    buffered: [],
    record: newRecord(),
  }
  const take = (committedAt: number, time = committedAt): void =>
    judging.take(stream, { time, value: 20 + ((committedAt / minute) % 7), observation: 'o', committedAt })
  for (let at = 0; at < 60; at++) take(at * minute)
  return { stream, take, judging }
}

/** Written states of a stream, with their observedAt in minutes. */
function statesOf({ record }: FaultStream) {
  return record.writes
    .map(({ entity }) => entity[faultTerms.state] as { value: string; observedAt: string } | undefined)
    .filter((one) => one !== undefined)
    .map(({ value, observedAt }) => [value, Date.parse(observedAt) / minute])
}

it('write that a silent stream was stopped after its fault, not before', () => {
  const { stream, judging } = begin()
  judging.silent(stream, 90 * minute)
  expect(statesOf(stream)).toEqual([['fault', 90]])
  stream.record.isStopped = true
  judging.end(stream)
  expect(statesOf(stream)).toEqual([['stopped', 90]])
})

it('write that a stream recovers from a silence that ended with older samples', () => {
  const { stream, take, judging } = begin()
  judging.silent(stream, 90 * minute)
  for (let at = 60; at < 80; at++) take((at + 31) * minute, at * minute)
  expect(stream.record).toMatchObject({ state: 'recovering', verdict: 'ok' })
  expect(statesOf(stream)).toEqual([['recovering', 90]])
})

it('are judged on after one of a far future', () => {
  const { stream, take } = begin()
  take(60 * minute, Date.UTC(9999, 11, 31))
  for (let at = 61; at < 70; at++) take(at * minute)
  expect(stream.record).toMatchObject({ state: 'normal', open: [], last: { time: 69 * minute } })
})

it('are judged again from the fourth on after a device set its clock back', () => {
  const { stream, take } = begin()
  const times = [60, 61, 62, 63, 64].map((at) => {
    take(at * minute, (at - 30) * minute)
    return stream.record.last!.time / minute
  })
  expect(times).toEqual([59, 59, 59, 33, 34])
})
