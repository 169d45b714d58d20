/**
 * `npm run stall -- [--entities 20000] [--only text] [--loaded] [--program path]`: gives a real gateway the largest inputs that its limits allow and
 * prints for each how long its event loop stood still. Ends with 1 when one stood longer than it may, or memory grew.
 */
import { lineOf, runStalls } from '#test/stall/campaign.ts'
import { stallCases } from '#test/stall/cases.ts'
import { optionsOf, wholeNumber } from './options.ts'

const help = `Usage: npm run stall -- [options]

  --entities N  how many entities the gateway holds (default 20000)
  --only TEXT   only cases whose name has this text
  --loaded      beside steady traffic by MQTT and HTTP
  --plugins     with the quality analyser and fault detection, which are on by default
  --program P   run P instead of bin/selvedge, such as one that writes a profile

Exit code: 0 every case kept within 50 ms (200 ms with --loaded) and 250 MB; 1 one did not; 64 wrong usage.
`
const values = optionsOf('stall', help, {
  entities: { type: 'string', default: '20000' },
  only: { type: 'string', default: '' },
  loaded: { type: 'boolean', default: false },
  plugins: { type: 'boolean', default: false },
  program: { type: 'string' },
})
const [delayMsMax, peakMbMax] = [values.loaded ? 200 : 50, 250]
const tell = (line: string): void => void process.stdout.write(`${line}\n`)

const rows = await runStalls(
  stallCases.filter(({ name }) => name.includes(values.only)),
  {
    entities: wholeNumber('stall', 'entities', values.entities),
    isLoaded: values.loaded,
    hasAllPlugins: values.plugins,
    program: values.program,
    tell,
  },
)
const beyond = rows.filter(({ delayMs, peakMb }) => delayMs > delayMsMax || peakMb > peakMbMax)
tell(`\n${beyond.length} of ${rows.length} cases beyond ${delayMsMax} ms or ${peakMbMax} MB`)
for (const row of beyond.toSorted((a, b) => b.delayMs - a.delayMs)) tell(lineOf(row))
process.exitCode = beyond.length === 0 ? 0 : 1
