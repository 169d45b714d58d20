/**
 * Hub and gateway hold the same after cuts, kills and answers of failure, for seeds that once failed and one that is new
 * each time. `npm run judge` does the same for longer.
 */
import { describe, expect, it } from 'vitest'
import { keptSeeds } from './seeds.ts'
import { runTrial } from './trial.ts'

const seeds = [...keptSeeds.map(({ seed }) => seed), Date.now() % 1_000_000]

describe('an uplink through a bad way', () => {
  it.each(seeds)(
    'leaves hub and gateway the same (seed %i)',
    async (seed) => {
      const report = await runTrial({
        ...{ seed, observations: 12_000, seconds: 6, rate: 2000, patienceSeconds: 60 },
      })
      expect(report.complaints).toEqual([])
      expect(report.instances).toBeGreaterThan(2000)
      expect(report.notified).toBeGreaterThan(0)
    },
    120_000,
  )
})
