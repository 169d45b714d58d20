/** Trains virtual sensors of synthetic sensors that share a daily course and weather. */
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { predict } from './prediction.ts'
import type { SourceSeries, TrainingInput, VirtualSensorModel } from './virtual-sensor-model.ts'
import { trainVirtualSensor } from './virtual-sensor-training.ts'

const slotMs = 600_000
const count = 600

/** A shared daily course with noise; `factor` and `offset` make sources differ. */
function course(seed: number, factor = 1, offset = 0) {
  const random = createSeededRandom(seed)
  const shared = createSeededRandom(77)
  let weather = 0
  const times = Float64Array.from({ length: count }, (_, i) => i * slotMs)
  const values = times.map((time) => {
    weather = 0.9 * weather + shared() - 0.5
    const day = 5 * Math.sin((2 * Math.PI * time) / 86_400_000)
    return offset + factor * (day + 3 * weather) + 0.2 * (random() - 0.5)
  })
  return { times, values }
}

const source = (id: string, latitude: number, seed: number, factor = 1): SourceSeries => ({
  id,
  latitude,
  longitude: 0,
  distance: latitude * 111_195,
  ...course(seed, factor, 10),
})

const sources = [source('a', 0.01, 1), source('b', 0.02, 2, 1.2), source('c', 0.03, 3, 0.8)]
const target = { latitude: 0, longitude: 0, ...course(9, 1.1, 20) }
const input: TrainingInput = { target, sources, slotMs }

function modelOf(training: TrainingInput): VirtualSensorModel {
  const outcome = trainVirtualSensor(training)
  if ('failure' in outcome) throw new Error(outcome.failure)
  return outcome.model
}

const latestOf = (from: readonly SourceSeries[], slot: number) =>
  from.map(({ times, values }) => ({
    time: times[slot]!,
    value: values[slot]!,
    earlier: [{ time: times[slot - 1]!, value: values[slot - 1]! }],
  }))

const model = modelOf(input)

describe('training of a virtual sensor', () => {
  it('predicts the broken sensor within its interval', () => {
    expect(model.sources).toEqual(['a', 'b', 'c'])
    const found = predict(model, latestOf(sources, 500), 500 * slotMs)!
    expect(found.value).toBeCloseTo(target.values[500]!, 0)
    expect(found.low).toBeLessThan(found.value)
    expect(found.high).toBeGreaterThan(found.value)
    expect(found.used).toEqual(['a', 'b', 'c'])
  })

  it('gives the same model for the same input', () => {
    expect(JSON.stringify(modelOf(input))).toBe(JSON.stringify(model))
  })

  it('predicts from the remaining sources when one is silent for more than three of its intervals', () => {
    const latest = latestOf(sources, 500)
    latest[1] = { time: 496 * slotMs, value: 999, earlier: [] }
    const found = predict(model, latest, 500 * slotMs)!
    expect(found.used).toEqual(['a', 'c'])
    expect(found.value).toBeCloseTo(target.values[500]!, 0)
  })

  it('has no prediction without any source', () => {
    expect(predict(model, [undefined, undefined, undefined], 500 * slotMs)).toBeUndefined()
  })

  it('weighs the sources themselves for a place without a history', () => {
    const model = modelOf({ target: { latitude: 0, longitude: 0 }, sources, slotMs })
    expect(model.sources).toEqual(['a', 'b', 'c'])
    expect(predict(model, latestOf(sources, 500), 500 * slotMs)!.value).toBeCloseTo(
      10 + target.values[500]! - 20,
      -1,
    )
  })

  it('reports fewer than 50 common slots, and no source', () => {
    const short = { ...target, times: target.times.slice(0, 49), values: target.values.slice(0, 49) }
    expect(trainVirtualSensor({ ...input, target: short })).toEqual({ failure: 'not-enough-data' })
    expect(trainVirtualSensor({ ...input, sources: [] })).toEqual({ failure: 'no-source' })
  })

  it('reports that no source correlates', () => {
    const random = createSeededRandom(5)
    const noise = { ...target, values: target.values.map(() => random()) }
    expect(trainVirtualSensor({ ...input, target: noise })).toEqual({ failure: 'no-correlating-source' })
  })

  it('covers about 90 % of the values with its interval', () => {
    const half = (series: { times: Float64Array; values: Float64Array }) => ({
      times: series.times.slice(0, 400),
      values: series.values.slice(0, 400),
    })
    const model = modelOf({
      ...input,
      target: { ...target, ...half(target) },
      sources: sources.map((one) => ({ ...one, ...half(one) })),
    })
    const rest = Array.from({ length: 199 }, (_, i) => 401 + i)
    const covered = rest.filter((slot) => {
      const { low, high } = predict(model, latestOf(sources, slot), slot * slotMs)!
      return target.values[slot]! >= low && target.values[slot]! <= high
    })
    expect(covered.length / rest.length).toBeGreaterThan(0.8)
    expect(covered.length / rest.length).toBeLessThan(0.99)
  })

  it('predicts as well as the best simple baseline where sources are plain copies', () => {
    const copy = { ...sources[0]!, id: 'copy', values: target.values.slice() }
    const model = modelOf({ ...input, sources: [copy, ...sources] })
    const found = predict(model, latestOf([copy, ...sources], 500), 500 * slotMs)!
    expect(found.value).toBeCloseTo(target.values[500]!, 1)
  })

  it('widens the interval when sources are missing', () => {
    const whole = predict(model, latestOf(sources, 500), 500 * slotMs)!
    const [, , last] = latestOf(sources, 500)
    const reduced = predict(model, [undefined, undefined, last], 500 * slotMs)!
    expect(reduced.used).toEqual(['c'])
    expect(reduced.error).toBeGreaterThanOrEqual(0.5 * whole.error)
    expect(reduced.high - reduced.low).toBeGreaterThan(0)
  })

  it('uses a value that is late for all sources until it is older than three intervals', () => {
    expect(predict(model, latestOf(sources, 500), 503 * slotMs)?.used).toEqual(['a', 'b', 'c'])
    expect(predict(model, latestOf(sources, 500), 504 * slotMs)).toBeUndefined()
  })

  it('keeps the prediction and its interval within the range', () => {
    const model = modelOf({ ...input, range: { min: 0, max: 12 } })
    const found = predict(model, latestOf(sources, 500), 500 * slotMs)!
    expect([found.low, found.value, found.high].every((value) => value >= 0 && value <= 12)).toBe(true)
  })

  it('leaves a constant source out, and has finite numbers for constant sources without a history', () => {
    const constant = { ...sources[1]!, id: 'constant', values: sources[1]!.values.map(() => 4) }
    expect(modelOf({ ...input, sources: [...sources, constant] }).sources).toEqual(['a', 'b', 'c'])
    const place = { latitude: 0, longitude: 0 }
    for (const used of [[constant], [constant, { ...constant, id: 'other' }], [constant, ...sources]]) {
      const model = modelOf({ target: place, sources: used, slotMs })
      const found = predict(model, latestOf(used, 500), 500 * slotMs)!
      expect([found.value, found.error, found.low, found.high].every(Number.isFinite)).toBe(true)
    }
  })

  it('survives storage as JSON', () => {
    const stored = JSON.parse(JSON.stringify(model)) as VirtualSensorModel
    expect(predict(stored, latestOf(sources, 500), 500 * slotMs)).toEqual(
      predict(model, latestOf(sources, 500), 500 * slotMs),
    )
  })

  it('reports its progress up to 1', () => {
    const shares: number[] = []
    trainVirtualSensor(input, (share) => shares.push(share))
    expect(shares).toEqual(shares.toSorted((a, b) => a - b))
    expect(shares.at(-1)).toBe(1)
  })
})
