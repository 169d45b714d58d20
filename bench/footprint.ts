/**
 * `npm run bench -- footprint`: memory of the idle gateway and of one with 100,000 entities and 2 million history
 * values, time from exec to readiness, bytes at rest per observation. The floor is the same libraries in a process
 * that does nothing with them.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import BetterSqlite3 from 'better-sqlite3'
import { build } from 'esbuild'
import { connectAsync } from 'mqtt'
import { fill } from './fill.ts'
import { median, memory, startPinned } from './processes.ts'
import {
  end,
  layOutGateway,
  removeFolder,
  type Server,
  startFloor,
  startGateway,
  temporaryFolder,
} from './servers.ts'
import { pathOf } from './site.ts'

const mqttLoad = new URL('./mqtt-load.ts', import.meta.url).pathname
const root = join(import.meta.dirname, '..')
const starts = 10
const publishers = 100

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

export async function benchFootprint(options: { quick: boolean }): Promise<void> {
  const command = layOutGateway()
  const floor = await bundleFloor()
  try {
    await idle(command, floor)
    await startUp(command, floor)
  } finally {
    removeFolder(join(floor, '..'))
  }
  await loaded(
    command,
    options.quick ? { stations: 10_000, values: 200_000 } : { stations: 100_000, values: 2_000_000 },
  )
}

/** As the gateway's bundle; its folder lies in the checkout, where its libraries are found. */
async function bundleFloor(): Promise<string> {
  const outfile = join(root, 'node_modules/.cache/selvedge-bench', String(process.pid), 'floor.mjs')
  await build({
    entryPoints: [join(import.meta.dirname, 'footprint-floor.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    external: ['better-sqlite3'],
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'warning',
  })
  return outfile
}

async function idle(command: string, floor: string): Promise<void> {
  const [ours, bare] = [await startGateway(command), await startFloor(floor)]
  await ask(ours, '/ngsi-ld/v1/entities?type=Nothing')
  await ask(bare, '/')
  print('idle after 20 requests', ours)
  process.stdout.write('  (goal 100 MB, 50 MB of it private)\n')
  const client = await connectAsync(`mqtt://127.0.0.1:${ours.port}`)
  await client.publishAsync('senml/x', '[{"n":"d:t","u":"Cel","v":21}]', { qos: 1 })
  await client.endAsync()
  await pause(2000)
  print('idle after a device has sent its first value', ours)
  process.stdout.write('\n')
  print('the same libraries doing nothing (the floor)', bare)
  const ratio = memory(ours.pid).resident / memory(bare.pid).resident
  process.stdout.write(`\nratio: ${ratio.toFixed(2)} of the floor's resident memory\n\n`)
  await Promise.all([ours.stop(), bare.stop()])
}

async function ask(server: Server, path: string): Promise<void> {
  for (let i = 0; i < 20; i++) await (await fetch(`http://127.0.0.1:${server.httpPort}${path}`)).arrayBuffer()
  await pause(2000)
}

function print(name: string, { pid }: Server): void {
  const { resident, privateBytes } = memory(pid)
  process.stdout.write(
    `${name.padEnd(46)} ${megabytes(resident)} resident, ${megabytes(privateBytes)} private`,
  )
}

/** From exec to the line gateway.ready; the first starts, which fill the compile cache, do not count. */
async function startUp(command: string, floor: string): Promise<void> {
  const folder = temporaryFolder()
  const times = async (start: () => Promise<Server>): Promise<number> => {
    const all: number[] = []
    for (let i = 0; i < starts + 2; i++) {
      const server = await start()
      if (i >= 2) all.push(server.readyMs)
      await server.stop({ keep: true })
    }
    return median(all)
  }
  const ours = await times(() => startGateway(command, {}, folder))
  const bare = await times(() => startFloor(floor))
  process.stdout.write(
    `ready after exec: ${ours.toFixed(0)} ms, the floor ${bare.toFixed(0)} ms, median of ${starts}  (goal 300 ms)\n\n`,
  )
  removeFolder(folder)
}

async function loaded(
  command: string,
  { stations, values }: { stations: number; values: number },
): Promise<void> {
  const gateway = await startGateway(command)
  const perSecond = await fill(gateway.httpPort, stations)
  const startedAt = performance.now()
  await publish(gateway, values)
  const rate = values / ((performance.now() - startedAt) / 1000)
  process.stdout.write(
    `${stations} entities created at ${perSecond.toFixed(0)}/s, ${values} observations over MQTT at ${rate.toFixed(0)}/s\n`,
  )
  print('right after', gateway)
  // Longer than the write-back interval; V8 gives memory back only some time after the load.
  await pause(75_000)
  await ask(gateway, pathOf('get', 1, stations))
  process.stdout.write('\n')
  print('75 s later', gateway)
  process.stdout.write('  (goal 140 MB)\n')
  await gateway.stop({ keep: true })
  const again = await startGateway(command, {}, gateway.folder)
  await ask(again, pathOf('get', 1, stations))
  print('the same data after a restart', again)
  process.stdout.write(`, ready in ${again.readyMs.toFixed(0)} ms\n`)
  await again.stop({ keep: true })
  atRest(join(gateway.folder, 'selvedge.db'))
  removeFolder(gateway.folder)
}

/** Publishes from 100 devices at full speed until so many observations are committed. */
async function publish(gateway: Server, values: number): Promise<void> {
  const numbers = [gateway.port, publishers, 16, 3600, publishers, 0].map(String)
  const child = startPinned(1, [process.execPath, mqttLoad, ...numbers])
  for (let seen = 0; seen < values; await pause(200)) {
    const text = await (await fetch(`http://127.0.0.1:${gateway.httpPort}/metrics`)).text()
    seen = Number(/^selvedge_observations_total (\d+)/m.exec(text)?.[1] ?? 0)
  }
  await end(child)
}

/** What the observations take on disk once they are folded: chunk bodies, and whole pages of their table. */
function atRest(file: string): void {
  const database = new BetterSqlite3(file, { readonly: true })
  const of = (sql: string): number => database.prepare(sql).pluck().get() as number
  const count = of('SELECT sum(count) FROM chunk')
  const bodies = of('SELECT sum(length(body)) FROM chunk')
  const pages = of("SELECT sum(pgsize) FROM dbstat WHERE name = 'chunk' AND aggregate = TRUE")
  const log = of("SELECT sum(pgsize) FROM dbstat WHERE name = 'log' AND aggregate = TRUE")
  database.close()
  process.stdout.write(
    `at rest: ${(bodies / count).toFixed(2)} B per observation in chunk bodies, ${(pages / count).toFixed(2)} B in pages ` +
      `of their table (${count} folded)  (goal 4 B)\n` +
      `file ${megabytes(statSync(file).size)}, of which the bounded log takes ${megabytes(log)}\n`,
  )
}
