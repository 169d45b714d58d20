/** The anomaly chain of a stream, on seeded values. */
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { createAnomalyChain } from './anomaly-chain.ts'

/** Normal deviates of a seed. */
function normalDeviates(seed: number): () => number {
  const random = createSeededRandom(seed)
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

describe('the anomaly chain', () => {
  it('reports a jump of the level once, and says what it expected', () => {
    const next = normalDeviates(2)
    const chain = createAnomalyChain()
    for (let i = 0; i < 2000; i++) chain.take(20 + next(), true)
    const jump = Array.from({ length: 50 }, () => chain.take(32 + next(), true))
    expect(jump.filter(({ isAlarm }) => isAlarm)).toHaveLength(1)
    expect(jump[0]!.likelihood).toBeLessThan(1e-3)
    expect(jump[0]!.expected).toBeCloseTo(20, 0)
  })

  it('calibrates likelihoods: on exchangeable values one in a thousand is below 0.001, within a factor of 2', () => {
    let below = 0
    let judged = 0
    for (let seed = 1; seed <= 8; seed++) {
      const next = normalDeviates(seed)
      const chain = createAnomalyChain()
      for (let i = 0; i < 10_000; i++) {
        const { likelihood } = chain.take(next(), true)
        if (i < 2000) continue
        judged++
        if (likelihood <= 1e-3) below++
      }
    }
    expect(below / judged).toBeGreaterThan(0.0005)
    expect(below / judged).toBeLessThan(0.002)
  })

  it('judges a missing value as usual, and goes on', () => {
    const next = normalDeviates(3)
    const chain = createAnomalyChain()
    for (let i = 0; i < 500; i++) chain.take(i % 7 === 0 ? undefined : next(), true)
    expect(chain.take(undefined, true)).toMatchObject({ likelihood: 1, score: 0, isAlarm: false })
    expect(chain.take(Number.NaN, true).likelihood).toBe(1)
    expect(chain.take(40, true).likelihood).toBeLessThan(0.01)
  })

  it('learns nothing from values that are not to be learned', () => {
    const values = Array.from({ length: 300 }, normalDeviates(4))
    const [plain, other] = [createAnomalyChain(), createAnomalyChain()]
    for (const value of values) {
      plain.take(value, true)
      other.take(value, true)
    }
    for (let i = 0; i < 200; i++) other.take(9, false)
    // The windows of the latest values still hold the unlearned ones; the models do not.
    for (let i = 0; i < 60; i++) other.take(values[i], false)
    for (let i = 0; i < 60; i++) plain.take(values[i], false)
    expect(other.take(1.5, false).likelihood).toBe(plain.take(1.5, false).likelihood)
  })
})
