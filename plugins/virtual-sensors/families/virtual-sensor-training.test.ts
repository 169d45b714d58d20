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

describe('training of a virtual sensor', () => {
  it('predicts the broken sensor within its interval', () => {
    const model = modelOf(input)
    expect(model.sources).toEqual(['a', 'b', 'c'])
    const found = predict(model, latestOf(sources, 500), 500 * slotMs)!
    expect(found.value).toBeCloseTo(target.values[500]!, 0)
    expect(found.low).toBeLessThan(found.value)
    expect(found.high).toBeGreaterThan(found.value)
    expect(found.used).toEqual(['a', 'b', 'c'])
  })

  it('gives the same model for the same input', () => {
    expect(JSON.stringify(trainVirtualSensor(input))).toBe(JSON.stringify(trainVirtualSensor(input)))
  })

  it('predicts from the remaining sources when one is silent for more than three of its intervals', () => {
    const model = modelOf(input)
    const latest = latestOf(sources, 500)
    latest[1] = { time: 496 * slotMs, value: 999, earlier: [] }
    const found = predict(model, latest, 500 * slotMs)!
    expect(found.used).toEqual(['a', 'c'])
    expect(found.value).toBeCloseTo(target.values[500]!, 0)
  })

  it('has no prediction without any source', () => {
    expect(predict(modelOf(input), [undefined, undefined, undefined], 500 * slotMs)).toBeUndefined()
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
})
