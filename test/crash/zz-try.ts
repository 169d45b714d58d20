import { runCampaign } from '/work/main/test/crash/campaign.ts'
import { createDice, planKills } from '/work/main/test/crash/plan.ts'

const dice = createDice(7)
const report = await runCampaign(planKills(Number(process.argv[2] ?? 4), dice), {
  name: 'crash',
  dice,
  tell: (l) => console.log(l),
})
console.log(report)
