/**
 * `npm run judge -- [--seed n | --kept] [--observations 1000000] [--seconds 900] [--rate 2500] [--no-disk]`: a gateway and a hub under
 * devices, through cuts, kills, answers of failure, wrong clocks and a full disk (where a tmpfs can be mounted, which takes
 * root), and whether the hub holds what the gateway holds in the end. Prints what was done and what was found; ends with 1
 * where they differ. A seed that failed belongs into test/judge/seeds.ts.
 */
import { keptSeeds, shortTrial } from '#test/judge/seeds.ts'
import { runTrial, type TrialOptions } from '#test/judge/trial.ts'
import { optionsOf, wholeNumber } from './options.ts'

const help = `Usage: npm run judge -- [options]

  --seed N          of what is done, and when (default: the time)
  --kept            instead, every seed that ever failed, one short trial after the other
  --observations N  ends when so many were acknowledged (default 1000000),
  --seconds N       or after so long (default 900)
  --rate N          most observations a second (default 2500)
  --budget N        most observations that may wait for the hub, 0 for any number (default: as the seed says)
  --no-restore      restore no hub
  --no-disk         fill no disk, also where one could be mounted

Exit code: 0 hub and gateway hold the same in the end; 1 they do not, or the trial did not end in time; 64 wrong usage;
130 and 143 it was stopped by a signal, and has ended its gateways and unmounted its disk.
`

const values = optionsOf('judge', help, {
  kept: { type: 'boolean', default: false },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  observations: { type: 'string', default: '1000000' },
  seconds: { type: 'string', default: '900' },
  rate: { type: 'string', default: '2500' },
  budget: { type: 'string' },
  'no-restore': { type: 'boolean', default: false },
  'no-disk': { type: 'boolean', default: false },
})
const whole = (name: 'seed' | 'observations' | 'seconds' | 'rate'): number =>
  wholeNumber('judge', name, values[name])
const seed = whole('seed')
const [observations, seconds, rate] = [whole('observations'), whole('seconds'), whole('rate')]
const tell = (line: string): void => void process.stdout.write(`${line}\n`)
const stopping = new AbortController()
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.once(signal, () => {
    process.exitCode = code
    stopping.abort()
  })

const given = {
  ...(values.budget === undefined ? {} : { budget: wholeNumber('judge', 'budget', values.budget) }),
  ...(values['no-restore'] ? { restoresHub: false } : {}),
  ...(values['no-disk'] ? { fillsDisk: false } : {}),
}
const trials: readonly TrialOptions[] = values.kept
  ? keptSeeds.map(({ seed: kept, budget = 0 }) => ({ ...shortTrial, seed: kept, budget, ...given }))
  : [{ seed, observations, seconds, rate, patienceSeconds: 300, ...given }]
let areSame = true
for (const trial of trials) areSame = (await isSame(trial)) && areSame
process.exit(areSame ? 0 : 1)

/** Runs a trial and prints what came of it. */
async function isSame(trial: TrialOptions): Promise<boolean> {
  tell(`seed ${trial.seed}`)
  const report = await runTrial({ ...trial, log: tell, signal: stopping.signal }).catch((error: unknown) => {
    tell(`${error instanceof Error ? error.message : String(error)}, seed ${trial.seed}`)
    if (process.exitCode !== undefined) process.exit()
    return undefined
  })
  if (report === undefined) return false
  const { complaints, ...figures } = report
  tell(JSON.stringify(figures, undefined, 2))
  for (const complaint of complaints) tell(complaint)
  const isWell = complaints.length === 0
  tell(isWell ? 'hub and gateway hold the same' : `${complaints.length} complaints, seed ${trial.seed}`)
  return isWell
}
