/**
 * Hub and gateway hold the same data after outages, kills and failed responses: for a quarter of the seeds
 * that once failed, another quarter with each run, and for a new seed each time, with and without a budget.
 * `npm run judge -- --kept` runs all of them, and `npm run judge` runs longer trials.
 */
import { describe, expect, it } from 'vitest'
import { keptSeeds, shortTrial } from './seeds.ts'
import { runTrial } from './trial.ts'

const fresh = Date.now() % 1_000_000
const budget = 1000 + (fresh % 3000)
const quarter = fresh % 4
const seeds = [
  ...keptSeeds.filter((_, i) => i % 4 === quarter).map(({ seed, budget = 0 }) => ({ seed, budget })),
  { seed: fresh, budget: 0 },
  { seed: fresh, budget, restoresHub: false },
]

describe('an uplink over an unreliable link', () => {
  it.each(seeds)('leaves hub and gateway the same (seed $seed, budget $budget)', async (given) => {
    const report = await runTrial({ ...shortTrial, ...given })
    expect(report.complaints).toEqual([])
    expect(report.instances).toBeGreaterThan(500)
    expect(report.notified).toBeGreaterThan(0)
  })
})
