/**
 * Fault detection for one stream: the documented times, replay, saving, and values and times that are none.
 */
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { defaultDetectionSettings } from './detection-settings.ts'
import {
  createStreamDetector,
  type DetectionProfile,
  type Judgement,
  type StreamSample,
} from './stream-detector.ts'

const minute = 60_000
const profile: DetectionProfile = { intervalMs: minute, settings: defaultDetectionSettings }

const varying = (count: number): StreamSample[] => {
  const random = createSeededRandom(1)
  return Array.from({ length: count }, (_, i) => ({
    time: i * minute,
    value: 20 + Math.round(random() * 100) / 10,
  }))
}

/** The samples, followed by equal values. */
const sticking = (samples: readonly StreamSample[], count: number, value = 23.45): StreamSample[] => [
  ...samples,
  ...Array.from({ length: count }, (_, i) => ({ time: (samples.length + i) * minute, value })),
]

const judged = (samples: readonly StreamSample[], of: DetectionProfile = profile): Judgement[] => {
  const detector = createStreamDetector(of)
  return samples.map((sample) => detector.take(sample))
}

const indexOfFault = (judgements: readonly Judgement[]): number =>
  judgements.findIndex(({ verdict }) => verdict === 'faulty')

describe('a sensor that sticks', () => {
  it('is a definite fault at the 8th equal value after 100 samples that vary', () => {
    const judgements = judged(sticking(varying(100), 30))
    expect(indexOfFault(judgements)).toBe(107)
    expect(judgements[107]).toMatchObject({
      state: 'fault',
      begun: [{ class: 'stuck', kind: 'definite', begin: 100 * minute }],
    })
    expect(judgements.flatMap(({ begun }) => begun)).toHaveLength(1)
  })

  it('is a definite fault at the 20th equal value after a short history that varies', () => {
    expect(indexOfFault(judged(sticking(varying(30), 30)))).toBe(49)
  })

  it('is a definite fault at the 20th equal value if it never varied, but its neighbours do', () => {
    const neighbour = { value: 20, error: 1, isVarying: true, areAgreeing: true }
    const samples = sticking([], 30).map((sample) => ({ ...sample, neighbour }))
    expect(indexOfFault(judged(samples))).toBe(19)
  })

  it('is not called stuck if it never varied and has no neighbours', () => {
    expect(indexOfFault(judged(sticking([], 500)))).toBe(-1)
  })

  it('recovers at the first other value and is normal after the documented number of good samples', () => {
    const samples = sticking(varying(100), 20)
    const detector = createStreamDetector({
      ...profile,
      settings: { ...defaultDetectionSettings, clearSamples: 6 },
    })
    for (const sample of samples) detector.take(sample)
    const after = [21, 22, 23, 24, 25, 26].map((value, i) =>
      detector.take({ time: (120 + i) * minute, value }),
    )
    expect(after.map(({ state }) => state)).toEqual([...new Array<string>(5).fill('recovering'), 'normal'])
    expect(after[0]!.ended).toMatchObject([{ class: 'stuck', begin: 100 * minute, end: 119 * minute }])
  })
})

describe('a sensor that is silent', () => {
  it('is a definite fault after three intervals, and the same when the feed is replayed without a clock', () => {
    const detector = createStreamDetector(profile)
    for (const sample of varying(100)) detector.take(sample)
    expect(detector.nextAt()).toBe((99 + 3.5) * minute)
    expect(detector.advance({ time: 102 * minute })).toBeUndefined()
    const live = detector.advance({ time: 103 * minute })
    expect(live).toMatchObject({ state: 'fault', begun: [{ class: 'dropout', begin: 100 * minute }] })
    expect(detector.nextAt()).toBeUndefined()
    const replayed = createStreamDetector(profile)
    for (const sample of varying(100)) replayed.take(sample)
    const back = { time: 110 * minute, value: 22 }
    expect(replayed.take(back)).toMatchObject({ begun: live!.begun, ended: detector.take(back).ended })
  })
})

describe('a sensor that sticks and then falls silent', () => {
  it.each([
    ['as the next value shows', []],
    ['as the clock shows', [114 * minute]],
  ])('is stuck until it falls silent, %s', (_, clock) => {
    const detector = createStreamDetector(profile)
    const stuck = sticking(varying(100), 10)
    const judgements = stuck.map((sample) => detector.take(sample))
    expect(judgements.flatMap(({ begun }) => begun)).toMatchObject([{ class: 'stuck' }])
    const later = clock.map((time) => detector.advance({ time })!)
    later.push(detector.take({ time: 120 * minute, value: 22 }))
    expect(later.flatMap(({ begun }) => begun)).toMatchObject([{ class: 'dropout' }])
    expect(later.flatMap(({ ended }) => ended)).toMatchObject([
      { class: 'stuck', begin: 100 * minute, end: 109 * minute },
      { class: 'dropout', begin: 110 * minute, end: 120 * minute },
    ])
  })
})

describe('a sensor whose gateway was down', () => {
  const [last, down] = [99 * minute, 60 * minute]

  it('is not silent in that time, and its normal gaps stay as they were', () => {
    const detector = createStreamDetector(profile)
    for (const sample of varying(100)) detector.take(sample)
    expect(detector.advance({ time: last + down + 2 * minute, downMs: down })).toBeUndefined()
    const back = detector.take({ time: last + down + 3 * minute, downMs: down, value: 22 })
    expect(back).toMatchObject({ state: 'normal', verdict: 'ok', begun: [] })
    expect(detector.nextAt()).toBe(last + down + 6.5 * minute)
  })

  it('is silent if the rest of the gap is too long, from its next value after that time', () => {
    const detector = createStreamDetector(profile)
    for (const sample of varying(100)) detector.take(sample)
    const silent = detector.advance({ time: last + down + 4 * minute, downMs: down })
    expect(silent).toMatchObject({
      state: 'fault',
      begun: [{ class: 'dropout', begin: last + down + minute }],
    })
  })
})

describe('values and times that are none', () => {
  it('calls two of three values outside the limits a definite fault, one an anomaly', () => {
    const limited = { ...profile, min: 0, max: 40 }
    const samples = [...varying(50), { time: 50 * minute, value: 41 }, { time: 51 * minute, value: 42 }]
    const [one, two] = judged(samples, limited).slice(-2)
    expect(one).toMatchObject({ verdict: 'ok', begun: [{ class: 'range', kind: 'anomaly' }] })
    expect(two).toMatchObject({
      verdict: 'faulty',
      begun: [{ class: 'range', kind: 'definite', begin: 50 * minute }],
    })
  })

  it('calls a value that is no number faulty', () => {
    const judgement = judged([...varying(50), { time: 50 * minute, value: Number.NaN }]).at(-1)
    expect(judgement).toMatchObject({ verdict: 'faulty', begun: [{ class: 'sentinel' }] })
  })

  it('calls a clock that goes back a fault, ignores a repeated sample, and follows a clock that was set back', () => {
    const samples = varying(50)
    expect(judged([...samples, samples.at(-1)!]).at(-1)).toMatchObject({ verdict: 'ok', begun: [] })
    const back = judged([...samples, ...varying(20)]).slice(50)
    expect(back[0]).toMatchObject({ verdict: 'faulty', begun: [{ class: 'clock' }] })
    expect(back.at(-1)).toMatchObject({ state: 'recovering', verdict: 'ok' })
    expect(judged([...samples, { time: Number.NaN, value: 1 }]).at(-1)).toMatchObject({ verdict: 'ok' })
  })
})

/** A judgement without its estimate, of which a saved detector keeps few digits. */
const verdictOf = ({ state, verdict, begun, ended }: Judgement) => ({ state, verdict, begun, ended })

describe('a saved detector', () => {
  it('has the approach and the likelihoods from before once its anomaly detectors took the history again', () => {
    const random = createSeededRandom(3)
    const daily: StreamSample[] = Array.from({ length: 700 }, (_, i) => ({
      time: i * minute,
      value: 20 + 5 * Math.sin((2 * Math.PI * i) / 48) + random(),
    }))
    const [known, next] = [daily.slice(0, 600), daily.slice(600)]
    const unbroken = createStreamDetector(profile)
    for (const sample of known) unbroken.take(sample)
    const restored = createStreamDetector(profile, unbroken.saved())
    expect(restored.approach().method).toBe('dirichlet-process')
    const recall = restored.recall()
    recall.take(known.slice(0, 250))
    recall.take(known.slice(250))
    expect(restored.approach().method).toBe('dirichlet-process')
    recall.end()
    expect(restored.approach()).toEqual({ method: 'seasonal-arima', periodMs: 48 * minute })
    expect(restored.approach()).toEqual(unbroken.approach())
    const likelihoods = (detector: typeof restored) => next.map((sample) => detector.take(sample).likelihood)
    expect(likelihoods(restored)).toEqual(likelihoods(unbroken))
  })

  it('rejects a state of another version or shape', () => {
    const saved = createStreamDetector(profile).saved()
    for (const wrong of [
      { ...saved, version: 1 },
      { ...saved, leaves: [] },
    ])
      expect(() => createStreamDetector(profile, wrong)).toThrow('another version or shape')
  })

  it('goes on with the same verdicts at every sample of a fault', () => {
    const samples = [...sticking(varying(110), 12), ...varying(160).slice(122)]
    const whole = judged(samples)
    for (let cut = 105; cut < 130; cut++) {
      const first = createStreamDetector(profile)
      for (const sample of samples.slice(0, cut)) first.take(sample)
      const second = createStreamDetector(profile, JSON.parse(JSON.stringify(first.saved())))
      const verdicts = samples.slice(cut).map((sample) => verdictOf(second.take(sample)))
      expect(verdicts).toEqual(whole.slice(cut).map(verdictOf))
      expect(JSON.stringify(first.saved()).length).toBeLessThan(2500)
    }
  })
})

/** A daily course of `period` samples with noise, in steps of one size. */
function cleanSamples({ seed, step, period }: { seed: number; step: number; period: number }) {
  const random = createSeededRandom(seed)
  const noise = (): number => (random() + random() + random() - 1.5) * 1.5
  return Array.from({ length: 10_000 }, (_, i) => {
    const value = Math.round((20 + 6 * Math.sin((2 * Math.PI * i) / period) + noise()) / step) * step
    return { time: (i * 24 * 60 * minute) / period, value: Number(value.toFixed(2)) }
  })
}

describe('clean feeds', () => {
  it.each([
    [0.1, 80],
    [1, 36],
    [1, 1000],
  ])('by the hour do not turn a lasting noise alarm into a fault, rounded to %s', (step, seed) => {
    const samples = cleanSamples({ seed, step, period: 24 })
    const of = { intervalMs: 60 * minute, settings: defaultDetectionSettings, anomalies: 'none' as const }
    expect(indexOfFault(judged(samples, of))).toBe(-1)
  })

  it.each([0.01, 0.1, 0.2, 0.5, 1, 2])(
    'of a daily course with noise have no faulty sample, rounded to %s',
    (step) => {
      for (const [seed, period] of [24, 96, 288, 1440].entries()) {
        const samples = cleanSamples({ seed, step, period })
        const of = { intervalMs: (24 * 60 * minute) / period, settings: defaultDetectionSettings }
        expect(indexOfFault(judged(samples, of)), `period ${period}`).toBe(-1)
      }
    },
  )
})
