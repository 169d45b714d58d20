/** Rules that learn: spikes, noise, bias and drift on a synthetic stream with neighbours, and error codes. */
import { beforeAll, describe, expect, it } from 'vitest'
import { defaultDetectionSettings } from '#plugins/faults/detection/detection-settings.ts'
import {
  createStreamDetector,
  type StreamDetector,
  type StreamSample,
} from '#plugins/faults/detection/stream-detector.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { createExtremes, learnExtreme, thresholdOf } from './extremes.ts'

const hour = 3_600_000
const profile = {
  intervalMs: hour,
  periodMs: 24 * hour,
  anomalies: 'none' as const,
  settings: defaultDetectionSettings,
}

/** A daily course with noise; the neighbours know it but for noise of their own. */
function seriesOf(seed: number, count: number): StreamSample[] {
  const random = createSeededRandom(seed)
  const noise = (): number => (random() + random() + random() - 1.5) * 0.8
  return Array.from({ length: count }, (_, i) => {
    const course = 20 + 6 * Math.sin((2 * Math.PI * i) / 24)
    const neighbour = { value: course + noise(), error: 0.5, isVarying: true, areAgreeing: true }
    return { time: i * hour, value: Math.round((course + noise()) * 100) / 100, neighbour }
  })
}

const known = 2000
const clean = seriesOf(3, 2400)
let saved: ReturnType<StreamDetector['saved']>

beforeAll(() => {
  const detector = createStreamDetector(profile)
  detector.learn(clean.slice(0, known))
  saved = detector.saved()
})

/** Findings in the samples after the history, changed by `fault`. */
function findingsOf(fault: (value: number, index: number) => number, count = 100) {
  const detector = createStreamDetector(profile, saved)
  return clean.slice(known, known + count).flatMap((sample, index) => {
    const judgement = detector.take({ ...sample, value: fault(sample.value, index) })
    return judgement.begun.map((finding) => ({ index, class: finding.class, kind: finding.kind, judgement }))
  })
}

describe('learned rules', () => {
  it('find nothing in the series as it goes on', () => {
    expect(findingsOf((value) => value, 400)).toEqual([])
  })

  it('name a spike with the next sample', () => {
    const [first] = findingsOf((value, i) => (i === 50 ? value + 12 : value))
    expect(first).toMatchObject({ index: 51, class: 'spike', kind: 'anomaly' })
  })

  it('name noise', () => {
    const [first] = findingsOf((value, i) => (i < 50 ? value : value + (i % 2 === 0 ? 5 : -5)))
    expect(first).toMatchObject({ class: 'noise', kind: 'anomaly' })
  })

  it('call a bias against neighbours that agree a definite fault, and estimate the value by them', () => {
    const [first] = findingsOf((value, i) => (i < 50 ? value : value + 4))
    expect(first).toMatchObject({ class: 'bias', kind: 'definite' })
    expect(first!.index).toBeLessThan(62)
    const { verdict, estimate } = first!.judgement
    expect(verdict).toBe('faulty')
    expect(estimate).toEqual({
      value: clean[known + first!.index]!.neighbour!.value,
      error: 0.5,
      method: 'neighbours',
    })
  })

  it('find a drift against the neighbours before it is larger than the daily course', () => {
    const [first] = findingsOf((value, i) => value + Math.max(0, i - 50) * 0.03, 250)
    expect(['drift', 'bias']).toContain(first!.class)
    expect(first!.index).toBeLessThan(250)
  })

  it('call a sudden code far from all values a sentinel, and a frequent value that looks like a code none', () => {
    expect(findingsOf((value, i) => (i === 50 ? 85 : value))[0]).toMatchObject({
      class: 'sentinel',
      index: 50,
    })
    const hot = createStreamDetector(profile)
    const verdicts = clean.map((sample) => hot.take({ time: sample.time, value: sample.value + 62 }).begun)
    expect(verdicts.flat().filter((finding) => finding.class === 'sentinel')).toEqual([])
  })
})

describe('a threshold', () => {
  it('is exceeded by a healthy stream about as often as intended', () => {
    const random = createSeededRandom(5)
    const draw = (): number => -Math.log(1 - random())
    const extremes = createExtremes()
    for (let i = 0; i < 6000; i++) learnExtreme(extremes, draw())
    const threshold = thresholdOf(extremes)
    expect(threshold).toBeGreaterThan(Math.log(6000))
    expect(threshold).toBeLessThan(2 * Math.log(6000))
  })

  it('does not exist while too little is known', () => {
    expect(thresholdOf(createExtremes())).toBe(Number.POSITIVE_INFINITY)
  })
})
