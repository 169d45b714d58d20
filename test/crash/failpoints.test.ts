/**
 * Nothing acknowledged is lost: the gateway is killed once at every failpoint of its traffic and of its start, and
 * at two instants more, under MQTT publishers, HTTP writers, a session that is away and a subscriber that comes
 * and goes. Judged message by message. `npm run crash` does the same for longer.
 */
import { expect, it } from 'vitest'
import { runCampaign } from './campaign.ts'
import { createDice, planKills } from './plan.ts'
import { table } from './summary.ts'

it('keeps what it acknowledged, exactly once, whenever it is killed', async () => {
  const seed = Date.now() % 1_000_000
  const dice = createDice(seed)
  const report = await runCampaign(planKills(16, dice), { name: 'crash', dice })
  process.stdout.write(`seed ${seed}\n${table(report)}\n`)
  expect(report.complaints).toEqual([])
  expect(report.unnoticed).toEqual([])
  expect(report.rows.filter(({ missed }) => missed > 0).map(({ label }) => label)).toEqual([])
  expect(report.kills).toBe(17)
  expect(report.acknowledged).toBeGreaterThan(2000)
})
