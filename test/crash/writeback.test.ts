/**
 * The kill that takes some rest before: live values have just been written back into their documents, which is done a
 * second after they changed here. It has a data folder of its own, so that it can run beside the others.
 */
import { expect, it } from 'vitest'
import { runCampaign } from './campaign.ts'
import { createDice, writebackKill } from './plan.ts'

it('keeps what it acknowledged when it is killed after a write-back', async () => {
  const report = await runCampaign([writebackKill], {
    name: 'slow',
    dice: createDice(Date.now()),
    slowness: 8,
    env: { SELVEDGE_LIMITS: 'writebackMs=1000' },
  })
  expect(report.complaints).toEqual([])
  expect(report.unnoticed).toEqual([])
  expect(report.rows.filter(({ missed }) => missed > 0).map(({ label }) => label)).toEqual([])
})
