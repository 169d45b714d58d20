/**
 * `npm run judge -- [--seed n] [--observations 1000000] [--seconds 900] [--rate 2500] [--no-disk]`: a gateway and a hub under
 * devices, through cuts, kills, answers of failure, wrong clocks and a full disk (where a tmpfs can be mounted, which takes
 * root), and whether the hub holds what the gateway holds in the end. Prints what was done and what was found; ends with 1
 * where they differ. A seed that failed belongs into test/judge/seeds.ts.
 */
import { parseArgs } from 'node:util'
import { runTrial } from '#test/judge/trial.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    observations: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '900' },
    rate: { type: 'string', default: '2500' },
    'no-disk': { type: 'boolean', default: false },
  },
})
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const [observations, seconds, rate] = [values.observations, values.seconds, values.rate].map(Number) as [
  number,
  number,
  number,
]
if (![seed, observations, seconds, rate].every((n) => Number.isInteger(n) && n >= 0)) {
  process.stderr.write(
    'usage: npm run judge -- [--seed n] [--observations n] [--seconds n] [--rate n] [--no-disk]\n',
  )
  process.exit(64)
}
const tell = (line: string): void => void process.stdout.write(`${line}\n`)
tell(`seed ${seed}`)
const report = await runTrial({
  ...{ seed, observations, seconds, rate, tell },
  ...(values['no-disk'] ? { fillsDisk: false } : {}),
  patienceSeconds: 300,
})
const { complaints, ...figures } = report
tell(JSON.stringify(figures, undefined, 2))
for (const complaint of complaints) tell(complaint)
tell(
  complaints.length === 0 ? 'hub and gateway hold the same' : `${complaints.length} complaints, seed ${seed}`,
)
process.exit(complaints.length === 0 ? 0 : 1)
