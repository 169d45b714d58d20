/** Qualities of streams: a perfect feed, missing values, silence, downtime of the gateway, replays. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { missingNow, nextMissingAt, type Quality, qualityOf, ratedState } from './quality.ts'
import { createRecordRows } from './record-rows.ts'
import type { StreamMetadata } from './stream-metadata.ts'
import { type Downtime, observe, type StreamRecord } from './stream-record.ts'

const begin = Date.parse('2026-06-01T00:00:00Z')
const minute = 60_000
const records = createRecordRows()
const sensor: StreamMetadata = {
  intervalMs: minute,
  range: { kind: 'number', min: 0, max: 50 },
  isInferred: false,
}

/** A stream with values at these minutes, committed 100 ms later. */
function streamOf(
  minutes: readonly number[],
  { metadata = sensor, downtimes = [] as readonly Downtime[], delayMs = 100 } = {},
): StreamRecord {
  const record = records.create()
  for (const at of minutes) {
    const time = begin + at * minute
    observe(record, { time, value: 20, committedAt: time + delayMs }, metadata, downtimes)
  }
  return record
}

const qualityAt = (record: StreamRecord, minutes: number, metadata = sensor): Quality =>
  qualityOf(record, metadata, { now: begin + minutes * minute, upSince: begin })

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe('the quality of a stream', () => {
  it('is 1 in every rated value while the feed is perfect', () => {
    const quality = qualityAt(streamOf(upTo(3000)), 2999)
    expect(quality).toMatchObject({
      plausibility: { absolute: 1, rated: 1 },
      completeness: { absolute: 0, rated: 1 },
      frequency: { absolute: 60, rated: 1 },
      timeliness: { rated: 1 },
      artificiality: { absolute: 0, rated: 1 },
      share: 1,
      excused: 0,
      deliveryRatio: 1,
      availability: 1,
    })
  })

  it('has a timeliness of the share of the update interval that is left at the commit', () => {
    const timeliness = (delayMs: number) =>
      qualityAt(streamOf(upTo(100), { delayMs }), 99).timeliness.absolute
    expect([0, minute / 4, minute, 2 * minute].map(timeliness)).toEqual([1, 0.75, 0, 0])
  })

  it('has an equal rated state only while all rated values are equal', () => {
    const minutes = fc.integer({ min: 0, max: 40 })
    const step = fc.record({
      gap: minutes,
      value: fc.constantFrom(20, 99),
      late: fc.constantFrom(100, 90_000),
    })
    fc.assert(
      fc.property(
        fc.array(fc.tuple(step, fc.boolean(), minutes, fc.constantFrom(undefined, 0, 0.5, 1)), {
          minLength: 2,
        }),
        (steps) => {
          const record = records.create()
          const states = new Map<number, string>()
          let time = begin
          for (const [{ gap, value, late }, isInferred, silence, concordance] of steps) {
            time += gap * minute
            observe(record, { time, value, committedAt: time + late, isInferred }, sensor, [])
            record.ratedConcordance = concordance
            const clock = { now: time + late + silence * minute, upSince: begin }
            const rated = JSON.stringify(
              Object.values(qualityOf(record, sensor, clock)).map(
                (metric: unknown) => (metric as { rated?: number } | undefined)?.rated ?? null,
              ),
            )
            const state = ratedState(record, sensor, clock)
            expect(states.get(state) ?? rated).toBe(rated)
            states.set(state, rated)
          }
        },
      ),
    )
  })

  it('has a share lower by the fraction of values that are missing, and rated values in 0..1', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 0.9, noNaN: true }), fc.integer(), (fraction, seed) => {
        let state = seed >>> 0
        const random = (): number => {
          state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
          return state / 2 ** 32
        }
        // The last value of the day arrives, so that stream time reaches its end.
        const kept = upTo(1440).filter((at) => at === 0 || at === 1439 || random() >= fraction)
        const quality = qualityAt(streamOf(kept), 1439)
        expect(quality.share).toBeCloseTo(kept.length / 1440, 3)
        for (const { rated } of [quality.completeness, quality.frequency, quality.timeliness]) {
          expect(rated).toBeGreaterThanOrEqual(0)
          expect(rated).toBeLessThanOrEqual(1)
        }
      }),
      { numRuns: 30 },
    )
  })

  it('falls while a stream is silent, and its age grows with the clock', () => {
    const record = streamOf(upTo(100))
    const rated = [99.5, 100.2, 101.2, 102.2, 103.2, 104.2].map(
      (at) => qualityAt(record, at).completeness.rated,
    )
    expect(rated).toEqual([1, 0.6, 0.3, 0.1, 0, 0])
    expect(qualityAt(record, 104.2)).toMatchObject({
      completeness: { absolute: 5 },
      frequency: { rated: 0 },
      age: { absolute: 5.2 * 60 },
    })
    expect(qualityAt(record, 99 + 2880).share).toBe(0)
  })

  it('never has a negative age', () => {
    expect(qualityAt(streamOf([10]), 5).age.absolute).toBe(0)
  })

  it('recovers with the values that follow', () => {
    const rated = [1, 2, 3, 4].map(
      (more) =>
        qualityAt(streamOf([...upTo(100), ...upTo(more).map((i) => 110 + i)]), 109 + more).completeness.rated,
    )
    expect(rated).toEqual([0.4, 0.7, 0.9, 1])
  })

  it('of a replayed feed equals that of the live one in all that counts in stream time', () => {
    const minutes = upTo(300).filter((at) => at % 7 !== 3)
    const live = streamOf(minutes)
    const replayed = streamOf(minutes, { delayMs: 30 * 86_400_000 })
    expect(replayed).toMatchObject({
      completeness: live.completeness,
      frequency: live.frequency,
      plausibility: live.plausibility,
      intervalMs: live.intervalMs,
      count: live.count,
    })
    expect(qualityAt(replayed, 299).share).toBe(qualityAt(live, 299).share)
  })

  it('excuses what is missing while the gateway was down, and counts it', () => {
    const downtimes = [{ from: begin + 99.01 * minute, to: begin + 119.9 * minute }]
    const record = streamOf([...upTo(100), ...upTo(50).map((i) => 120 + i)], { downtimes })
    expect(qualityAt(record, 169)).toMatchObject({
      completeness: { rated: 1 },
      frequency: { rated: 1 },
      share: 1,
      availability: 1,
      excused: 20,
    })
  })

  it('excuses only the values that were expected during a short downtime', () => {
    const at = (minutes: number) => ({
      from: begin + minutes * minute,
      to: begin + (minutes + 0.05) * minute,
    })
    const record = (downtime: Downtime) => streamOf([...upTo(100), 110], { downtimes: [downtime] })
    expect(qualityAt(record(at(105.5)), 110)).toMatchObject({ excused: 0, completeness: { rated: 0.4 } })
    expect(qualityAt(record(at(104.98)), 110)).toMatchObject({ excused: 1 })
  })

  it('does not count the time before the gateway started as silence', () => {
    const record = streamOf(upTo(10))
    const upSince = begin + 500 * minute
    expect(missingNow(record, minute, { now: upSince + minute, upSince })).toBe(0)
    expect(missingNow(record, minute, { now: upSince + 1.2 * minute, upSince })).toBe(1)
  })

  it('counts the silence before the gateway was down, and not that in between', () => {
    const record = streamOf([0])
    const downtimes = [
      { from: begin - 5 * minute, to: begin - 4 * minute },
      { from: begin + 20.05 * minute, to: begin + 100 * minute },
      { from: begin + 103 * minute, to: begin + 110 * minute },
    ]
    const upSince = begin + 110.1 * minute
    const missingAt = (minutes: number) =>
      missingNow(record, minute, { now: begin + minutes * minute, upSince, downtimes })
    expect([110.2, 111, 111.3, 113.3].map(missingAt)).toEqual([21, 21, 22, 24])
    const moment = { now: begin + 110.2 * minute, upSince, downtimes }
    const nextAt = nextMissingAt(record, minute, moment)!
    expect(missingNow(record, minute, { ...moment, now: nextAt })).toBe(42)
    expect(missingNow(record, minute, { ...moment, now: nextAt - 1 })).toBe(41)
  })

  it('counts a repeated value once, and a late one without an interval', () => {
    const record = streamOf([0, 1, 2, 2, 5, 3])
    expect(record.count).toBe(5)
    expect(record.intervalMs).toBe(3 * minute)
    expect(qualityAt(record, 5).share).toBeCloseTo(5 / 6, 4)
  })

  it('counts values that come again among the latest 32 once', () => {
    const sent = [...upTo(100), ...upTo(20).map((i) => 160 - i), 99, 150, 160, 141]
    const record = streamOf([...sent, 69])
    expect(record.count).toBe(121)
    expect(qualityAt(record, 160).share).toBeCloseTo(121 / 161, 4)
    expect(streamOf(sent).count).toBe(120)
  })

  it('has no completeness without an update interval', () => {
    const metadata = { ...sensor, intervalMs: undefined }
    const quality = qualityAt(streamOf(upTo(5), { metadata }), 5, metadata)
    expect(quality.completeness).toEqual({ absolute: undefined, rated: undefined })
    expect(quality.frequency).toEqual({ absolute: 60, rated: undefined })
  })

  it('says when the next of the first values is missing', () => {
    const record = streamOf([0])
    const committedAt = begin + 100
    for (const now of [begin + 200, begin + 1.5 * minute, begin + 7 * minute]) {
      const clock = { now, upSince: begin }
      const at = nextMissingAt(record, minute, clock)!
      expect(at).toBeGreaterThan(now)
      const missing = missingNow(record, minute, clock)
      expect(missingNow(record, minute, { ...clock, now: at })).toBe(missing + 1)
      expect(at).toBeCloseTo(committedAt + (missing + 1.1) * minute, 3)
    }
  })
})
