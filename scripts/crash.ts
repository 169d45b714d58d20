/**
 * `npm run crash -- [--kills 200] [--seed n]`: kills real gateways at every failpoint and at any instant under load,
 * and judges after each restart, message by message, whether what was acknowledged is there. Prints a line per kill
 * and a table; ends with 1 when anything is missing, or when the judge overlooks a made-up fact.
 */
import { runCampaign } from '#test/crash/campaign.ts'
import { createDice, planKills, writebackKill } from '#test/crash/plan.ts'
import { merged, table } from '#test/crash/summary.ts'
import { optionsOf, wholeNumber } from './options.ts'

const help = `Usage: npm run crash -- [options]

  --kills N  how often a gateway is killed (default 200)
  --seed N   of when and where (default: the time)

Exit code: 0 nothing that was acknowledged is missing; 1 something is, or the judge overlooked a made-up fact; 64 wrong usage.
`
const values = optionsOf('crash', help, {
  kills: { type: 'string', default: '200' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
})
const kills = wholeNumber('crash', 'kills', values.kills, 1)
const seed = wholeNumber('crash', 'seed', values.seed)
const tell = (line: string): void => void process.stdout.write(`${line}\n`)
tell(`${kills} kills, seed ${seed}`)

/** Kills after a write-back take a minute each and run beside the others. */
const slowKills = Math.ceil(kills / 50)
const fast = createDice(seed)
const report = merged(
  await Promise.all([
    runCampaign(planKills(Math.max(0, kills - slowKills - 2), fast), { name: 'crash', dice: fast, tell }),
    runCampaign(
      Array.from({ length: slowKills }, () => writebackKill),
      {
        name: 'slow',
        dice: createDice(seed + 1),
        slowness: 8,
        patienceMs: 150_000,
        tell,
      },
    ),
  ]),
)
tell(`\n${table(report)}\n`)
for (const complaint of report.complaints) tell(complaint)
tell(`judged ${report.judgements} times; slowest start ${Math.round(report.slowestStartMs)} ms`)
tell(
  report.unnoticed.length === 0
    ? 'the judge noticed every made-up fact'
    : `the judge overlooked: ${report.unnoticed.join(', ')}`,
)
const isProven = report.complaints.length === 0 && report.unnoticed.length === 0
process.exitCode = isProven && report.rows.every(({ missed }) => missed === 0) ? 0 : 1
