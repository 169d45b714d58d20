/** Low variance, rate, and several spikes within a day, on a synthetic stream with a daily course. */
import { describe, expect, it } from 'vitest'
import { defaultDetectionSettings } from '#plugins/faults/detection/detection-settings.ts'
import { createStreamDetector, type StreamSample } from '#plugins/faults/detection/stream-detector.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'

const hour = 3_600_000
const known = 2000
const random = createSeededRandom(3)
const noise = (): number => (random() + random() + random() - 1.5) * 0.8
const clean: StreamSample[] = Array.from({ length: known + 200 }, (_, i) => ({
  time: i * hour,
  value: Math.round((20 + 6 * Math.sin((2 * Math.PI * i) / 24) + noise()) * 100) / 100,
}))
const profile = { intervalMs: hour, anomalies: 'none' as const, settings: defaultDetectionSettings }
const saved = ((detector) => {
  detector.learn(clean.slice(0, known))
  return detector.saved()
})(createStreamDetector(profile))

/** Judgements of the samples after the history, changed by `fault`. */
function judged(fault: (sample: StreamSample, index: number) => Partial<StreamSample>, maxRate?: number) {
  const detector = createStreamDetector({ ...profile, ...(maxRate !== undefined && { maxRate }) }, saved)
  return clean
    .slice(known, known + 150)
    .map((sample, index) => detector.take({ ...sample, ...fault(sample, index) }))
}

/** Index, class and kind of each finding. */
const findings = (judgements: ReturnType<typeof judged>) =>
  judgements.flatMap(({ begun }, index) => begun.map((one) => ({ index, class: one.class, kind: one.kind })))

const calm = (i: number): number => 21 + 0.02 * Math.sin(i * i)

describe('low variance', () => {
  it('is an anomaly after a window of small changes, and definite when it lasts', () => {
    const judgements = judged(({ value }, i) => ({ value: i < 50 ? value : calm(i) }))
    const found = findings(judgements).filter((one) => one.class === 'low-variance')
    expect(found.at(-1)).toMatchObject({ kind: 'definite' })
    expect(found.at(-1)!.index).toBeLessThan(50 + 20)
    expect(judgements[found.at(-1)!.index]!.verdict).toBe('faulty')
  })

  it('is not found where the neighbours became as calm', () => {
    const neighbour = { error: 0.5, isVarying: true, areAgreeing: false }
    const withNeighbour = (value: number, near: number) => ({
      value,
      neighbour: { ...neighbour, value: near },
    })
    const stays = judged(({ value }, i) =>
      i < 50 ? withNeighbour(value, value) : withNeighbour(calm(i), calm(i + 1)),
    )
    expect(findings(stays).filter((one) => one.class === 'low-variance')).toEqual([])
    const alone = judged(({ value }, i) => withNeighbour(i < 50 ? value : calm(i), value))
    expect(findings(alone).map((one) => one.class)).toContain('low-variance')
  })

  it('is not found where the history was as calm', () => {
    const detector = createStreamDetector(profile)
    const nightly = (i: number): number => (i % 48 < 20 ? calm(i) : clean[i]!.value)
    const begun = Array.from({ length: known }, (_, i) =>
      detector.take({ time: i * hour, value: nightly(i) }),
    )
    expect(begun.flatMap((one) => one.begun).filter((one) => one.class === 'low-variance')).toEqual([])
  })
})

describe('rate', () => {
  it('is definite beyond a stated limit, from the first value until the course is plausible again', () => {
    const judgements = judged(({ value }, i) => ({ value: i < 50 || i > 52 ? value : value + 30 }), 5 / 3600)
    expect(findings(judgements)).toEqual([{ index: 50, class: 'rate', kind: 'definite' }])
    expect(judgements.slice(49, 54).map(({ verdict }) => verdict)).toEqual([
      'ok',
      'faulty',
      'faulty',
      'faulty',
      'ok',
    ])
    expect(judgements[53]!.ended).toMatchObject([{ class: 'rate', end: (known + 52) * hour }])
  })

  it('follows a sensor that was moved after five values', () => {
    const verdicts = judged(({ value }, i) => ({ value: i < 50 ? value : value + 300 }), 5 / 3600).map(
      ({ verdict }) => verdict,
    )
    expect(verdicts.slice(50, 55)).toEqual(new Array<string>(5).fill('faulty'))
    expect(verdicts[55]).toBe('ok')
  })

  it('is an anomaly at the second value that the history makes impossible', () => {
    const [first] = findings(judged(({ value }, i) => ({ value: i < 50 ? value : value + 40 })))
    expect(first).toEqual({ index: 51, class: 'rate', kind: 'anomaly' })
  })
})

describe('spikes', () => {
  it('are anomalies, and a definite fault at the third within a day', () => {
    const judgements = judged(({ value }, i) => ({
      value: [50, 57, 64, 140].includes(i) ? value + 12 : value,
    }))
    expect(findings(judgements)).toEqual([
      { index: 51, class: 'spike', kind: 'anomaly' },
      { index: 65, class: 'spike', kind: 'definite' },
      { index: 141, class: 'spike', kind: 'anomaly' },
    ])
  })
})
