/**
 * Hub and gateway hold the same after cuts, kills and answers of failure, for seeds that once failed and one that is new
 * each time. `npm run judge` does the same for longer.
 */
import { describe, expect, it } from 'vitest'
import { keptSeeds } from './seeds.ts'
import { runTrial } from './trial.ts'

const fresh = Date.now() % 1_000_000
const budget = 1000 + (fresh % 3000)
const seeds = [
  ...keptSeeds.map(({ seed, budget = 0 }) => ({ seed, budget })),
  { seed: fresh, budget: 0 },
  { seed: fresh, budget, restoresHub: false },
]

describe('an uplink through a bad way', () => {
  it.each(seeds)(
    'leaves hub and gateway the same (seed $seed, budget $budget)',
    async (given) => {
      const report = await runTrial({
        ...{ ...given, observations: 12_000, seconds: 6, rate: 2000, patienceSeconds: 60 },
      })
      expect(report.complaints).toEqual([])
      expect(report.instances).toBeGreaterThan(500)
      expect(report.notified).toBeGreaterThan(0)
    },
    120_000,
  )
})
