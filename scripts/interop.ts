/**
 * `npm run interop -- --centre URL`: runs an uplink against any NGSI-LD broker that is up, over a way that is made bad
 * and with the gateway killed meanwhile, compares what both ends hold, and writes the figures into docs/interop.md.
 * Ends with 1 when they are not the same. At the other broker it leaves nothing but what --keep asks for.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '#package' with { type: 'json' }
import { introductionOf } from '#test/interop/broker-view.ts'
import { isSame, pageWith } from '#test/interop/report.ts'
import { playScenes } from '#test/interop/scenes.ts'
import { openSite, type Site } from '#test/interop/site.ts'
import { optionsOf } from './options.ts'

const help = `Usage: npm run interop -- --centre URL [options]

Runs an uplink from a gateway started here to a running NGSI-LD broker: live, late values, refused connections with
deletions meanwhile, black hole, error answers, kill -9, flapping, and a backlog drained. After each, entities and
histories of both ends are compared by standard operations. Only entities of this run are touched.

  --centre URL      the broker, such as http://127.0.0.1:9090 (/ngsi-ld/v1 is added where it is missing)
  --tenant NAME     sent as NGSILD-Tenant
  --header "N: V"   sent with every request, such as "Authorization: Bearer ..."; may be given more than once
  --name TEXT       name and version of the broker, where it does not tell them itself
  --no-history      the broker keeps no histories
  --seconds N       length of the traffic of a scene (default 6)
  --backlog N       observations of the backlog that is drained (default 20000)
  --devices N       devices (default 4)
  --patience N      seconds to wait for both ends to be the same (default 120)
  --keep            leave the entities at the broker
  --no-page         do not write docs/interop.md
  --log FILE        write the gateway's log to a file

Exit code: 0 both ends are the same after every scene; 1 they are not; 64 wrong usage; 69 nobody answers.
`

const page = join(import.meta.dirname, '../docs/interop.md')
const tell = (line: string): void => void process.stdout.write(`${line}\n`)

function fail(why: string, code: number): never {
  process.stderr.write(`interop: ${why}\n`)
  process.exit(code)
}

function options() {
  const values = optionsOf('interop', help, {
    centre: { type: 'string' },
    tenant: { type: 'string' },
    header: { type: 'string', multiple: true, default: [] },
    name: { type: 'string' },
    'no-history': { type: 'boolean', default: false },
    seconds: { type: 'string', default: '6' },
    backlog: { type: 'string', default: '20000' },
    devices: { type: 'string', default: '4' },
    patience: { type: 'string', default: '120' },
    keep: { type: 'boolean', default: false },
    'no-page': { type: 'boolean', default: false },
    log: { type: 'string' },
  })
  if (values.centre === undefined || !URL.canParse(values.centre))
    fail('--centre URL is needed; see --help', 64)
  const { origin, protocol, pathname } = new URL(values.centre)
  if (protocol !== 'http:') fail('--centre has to be http: the way to it is cut between the two', 64)
  const headers: Record<string, string> = {}
  for (const one of values.header) {
    const colon = one.indexOf(':')
    if (colon < 1) fail(`--header "${one}" is not "Name: value"`, 64)
    headers[one.slice(0, colon).trim().toLowerCase()] = one.slice(colon + 1).trim()
  }
  if (values.tenant !== undefined) headers['ngsild-tenant'] = values.tenant
  const whole = (name: 'seconds' | 'backlog' | 'devices' | 'patience'): number => {
    const number = Number(values[name])
    if (!Number.isInteger(number) || number < 1) fail(`--${name} is not a whole number above 0`, 64)
    return number
  }
  return {
    ...values,
    base: origin + (pathname.endsWith('/ngsi-ld/v1') ? pathname : '/ngsi-ld/v1'),
    headers,
    seconds: whole('seconds'),
    backlog: whole('backlog'),
    devices: whole('devices'),
    patience: whole('patience'),
  }
}

const chosen = options()
const { base, headers, devices, seconds, backlog } = chosen
const hasHistory = !chosen['no-history']
const introduced = await introductionOf({ base, headers }).catch((error: unknown) =>
  fail(`${base} cannot be reached: ${error instanceof Error ? error.message : String(error)}`, 69),
)
const broker = chosen.name ?? introduced ?? fail('the broker does not say what it is: name it by --name', 64)
tell(`${broker} at ${base}`)
const site = await openSite({ base, headers, devices, hasHistory })
const { ways, results } = await playScenes(site, {
  seconds,
  backlog,
  devices,
  patienceMs: chosen.patience * 1000,
  tell,
})
if (chosen.log !== undefined) writeFileSync(chosen.log, site.log())
if (!chosen.keep) await leave(site)
await site.close()
const run = {
  broker,
  hasHistory,
  ways,
  scenes: results,
  date: new Date().toISOString().slice(0, 10),
  selvedge: packageJson.version,
  command: `npm run interop -- --seconds ${seconds} --backlog ${backlog} --devices ${devices}`,
}
if (!chosen['no-page']) writeFileSync(page, pageWith(readFileSync(page, 'utf8'), run))
process.exitCode = isSame(run) ? 0 : 1

/** What went up is deleted at the gateway, and so over there, too. */
async function leave({ ids, write, centre }: Site): Promise<void> {
  for (const id of ids()) await write('DELETE', `/entities/${encodeURIComponent(id)}`).catch(() => undefined)
  const until = performance.now() + 20_000
  for (const id of ids())
    while (performance.now() < until && (await centre.entity(id)) !== undefined)
      await new Promise((resolve) => setTimeout(resolve, 200))
}
