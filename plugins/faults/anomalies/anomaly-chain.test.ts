/** The anomaly chain of a stream, on seeded values. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { normalDeviates } from '#test/kit/normal-deviates.ts'
import { type AnomalyJudgement, type ChainOptions, createAnomalyChain } from './anomaly-chain.ts'
import { type ApproachChoice, type ApproachTask, chooseApproach } from './approach.ts'

const modes: readonly ChainOptions[] = [{}, { withNeighbourLibrary: true }]

function judged(values: readonly (number | undefined)[], options: ChainOptions): AnomalyJudgement[] {
  const chain = createAnomalyChain(options)
  return values.map((value) => chain.take(value, true))
}

/** A daily course of 24 slots plus noise. */
function daily(count: number, seed: number): number[] {
  const next = normalDeviates(seed)
  return Array.from({ length: count }, (_, i) => 20 + 5 * Math.sin((2 * Math.PI * i) / 24) + next())
}

describe.each(modes)('the anomaly chain with %o', (options) => {
  it('reports a jump of the level once, and what it expected', () => {
    const next = normalDeviates(2)
    const chain = createAnomalyChain(options)
    for (let i = 0; i < 2000; i++) chain.take(20 + next(), true)
    expect(chain.predict()!.expected).toBeCloseTo(20, 0)
    const jump = Array.from({ length: 50 }, () => chain.take(32 + next(), true))
    expect(jump.filter(({ isAlarm }) => isAlarm)).toHaveLength(1)
    expect(Math.min(...jump.slice(0, 5).map(({ likelihood }) => likelihood))).toBeLessThan(1e-3)
  })

  it('is calibrated: of exchangeable values one in a thousand is below 0.001, within a factor of 2', () => {
    let below = 0
    let count = 0
    for (let seed = 1; seed <= 8; seed++) {
      const values = Array.from({ length: 6000 }, normalDeviates(seed))
      for (const { likelihood } of judged(values, options).slice(1000)) {
        count++
        if (likelihood <= 1e-3) below++
      }
    }
    expect(below / count).toBeGreaterThan(0.0005)
    expect(below / count).toBeLessThan(0.002)
  })

  it('judges a missing value as usual, and goes on', () => {
    const next = normalDeviates(3)
    const chain = createAnomalyChain(options)
    for (let i = 0; i < 500; i++) chain.take(i % 7 === 0 ? undefined : next(), true)
    expect(chain.take(undefined, true)).toMatchObject({ likelihood: 1, score: 0, isAlarm: false })
    expect(chain.take(Number.NaN, true).likelihood).toBe(1)
    expect(chain.take(40, true).likelihood).toBeLessThan(0.01)
  })

  it('learns nothing from values that are not to be learned', () => {
    const values = Array.from({ length: 600 }, normalDeviates(4))
    const [plain, other] = [createAnomalyChain(options), createAnomalyChain(options)]
    for (const value of values) {
      plain.take(value, true)
      other.take(value, true)
    }
    for (let i = 0; i < 200; i++) other.take(9, false)
    // The windows of the latest values still hold the unlearned ones; the models do not.
    for (let i = 0; i < 120; i++) other.take(values[i], false)
    for (let i = 0; i < 120; i++) plain.take(values[i], false)
    expect(other.take(1.5, false).likelihood).toBe(plain.take(1.5, false).likelihood)
  })

  it('gives the same judgements for the same values', () => {
    const values = daily(1500, 5)
    expect(judged(values, options)).toEqual(judged(values, options))
  })

  it('gives finite judgements for any values', () => {
    const extremes = fc.constantFrom(0, -0, 1e308, -1e308, 5e-324, Number.NaN, Number.POSITIVE_INFINITY)
    const values = fc.array(fc.oneof(fc.double(), extremes, fc.constantFrom(undefined, 1, 2)), {
      minLength: 300,
      maxLength: 700,
    })
    fc.assert(
      fc.property(values, (some) => {
        const chain = createAnomalyChain(options)
        for (const value of some) {
          const { expected, deviation } = chain.predict() ?? { expected: 0, deviation: 1 }
          const { likelihood, score, evidence } = chain.take(value, true)
          expect(likelihood > 0 && likelihood <= 1).toBe(true)
          expect([score, evidence, expected, deviation].every(Number.isFinite)).toBe(true)
        }
      }),
      { seed: 21, numRuns: 20 },
    )
  })

  it('notices real values after a long start of equal ones', () => {
    const next = normalDeviates(6)
    const values = [
      ...Array.from({ length: 300 }, () => 0),
      ...Array.from({ length: 2000 }, () => 50 + next()),
    ]
    const judgements = judged(values, options)
    expect(judgements.slice(300, 340).some(({ isAlarm }) => isAlarm)).toBe(true)
    expect(judgements.slice(1500).filter(({ isAlarm }) => isAlarm).length).toBeLessThan(5)
  })
})

describe('the approach of a chain', () => {
  it('becomes seasonal ARIMA when a period shows, which notices a usual value at an unusual hour', () => {
    const values = daily(1986, 7)
    const chain = createAnomalyChain()
    const methods = values.map((value) => chain.take(value, true).method)
    expect(methods[100]).toBe('dirichlet-process')
    expect(methods.at(-1)).toBe('seasonal-arima')
    // Slot 1986 is near the lowest part of the day; 25 is usual at the highest.
    const { expected, deviation } = chain.predict()!
    expect(Math.abs(expected - 15.2)).toBeLessThan(2)
    expect(deviation).toBeLessThan(1.5)
    expect(chain.take(25, true).likelihood).toBeLessThan(0.01)
    expect(createAnomalyChain({ approach: 'dirichlet-process' }).take(1, true).method).toBe(
      'dirichlet-process',
    )
  })

  it('is chosen where the caller wants, one choice at a time, and adopted later', () => {
    const tasks: { task: ApproachTask; adopt: (choice: ApproachChoice | undefined) => void }[] = []
    const chain = createAnomalyChain({ choose: (task, adopt) => tasks.push({ task: task(), adopt }) })
    const values = daily(800, 8)
    for (const value of values.slice(0, 600)) chain.take(value, true)
    expect(tasks.map(({ task }) => task.values.length)).toEqual([220])
    // The first choice failed; the one that is overdue follows.
    tasks[0]!.adopt(undefined)
    chain.take(values[600], true)
    expect(tasks.map(({ task }) => task.values.length)).toEqual([220, 601])
    const { task, adopt } = tasks.at(-1)!
    adopt(chooseApproach(structuredClone(task)))
    const methods = values.slice(601).map((value) => chain.take(value, true).method)
    expect([methods[0], methods.at(-1)]).toEqual(['dirichlet-process', 'seasonal-arima'])
    expect(chain.predict()!.expected).toBeCloseTo(20 + 5 * Math.sin((2 * Math.PI * 800) / 24), -0.5)
  })
})
