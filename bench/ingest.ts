/**
 * `npm run bench -- ingest`: durable MQTT QoS 1 ingest through the whole pipeline, against what bare libraries store and
 * acknowledge and what Mosquitto acknowledges on the same core in the same run; slow flash; and bytes written per observation.
 */

import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '#test/kit/ports.ts'
import { type LoadFigures, medians, startPinned, underLoad } from './processes.ts'
import {
  end,
  layOutGateway,
  removeFolder,
  type Server,
  serverCore,
  startFloor,
  startGateway,
  temporaryFolder,
} from './servers.ts'

const floorFile = new URL('./ingest-floor.ts', import.meta.url).pathname
const load = new URL('./mqtt-load.ts', import.meta.url).pathname

interface Load {
  readonly publishers: number
  readonly window: number
  readonly seconds: number
  readonly devices: number
  readonly rate: number
}

async function startMosquitto(persistent: boolean): Promise<Server> {
  const folder = temporaryFolder()
  const port = await freePort()
  const file = join(folder, 'mosquitto.conf')
  const persistence = persistent
    ? `persistence true\npersistence_location ${folder}/\nautosave_on_changes true\nautosave_interval 1\n`
    : 'persistence false\n'
  writeFileSync(
    file,
    `listener ${port} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 0\n${persistence}`,
  )
  const child = startPinned(serverCore, ['/usr/sbin/mosquitto', '-c', file])
  await new Promise((resolve) => setTimeout(resolve, 500))
  const stop = async (): Promise<void> => {
    await end(child)
    removeFolder(folder)
  }
  return { pid: child.pid!, port, httpPort: 0, folder, readyMs: Number.NaN, stop }
}

/** Its metrics cannot be asked for: its port speaks MQTT. */
async function startBareLibraries(): Promise<Server> {
  const { httpPort: port, ...floor } = await startFloor(floorFile)
  return { ...floor, port, httpPort: 0 }
}

function measure(server: Server, { publishers, window, seconds, devices, rate }: Load): Promise<LoadFigures> {
  return underLoad(server, load, [server.port, publishers, window, seconds, devices, rate].map(String))
}

async function repeated(rounds: number, run: () => Promise<LoadFigures>): Promise<LoadFigures> {
  const all: LoadFigures[] = []
  for (let i = 0; i < rounds; i++) all.push(await run())
  return medians(all)
}

const fresh = async (start: () => Promise<Server>, load: Load): Promise<LoadFigures> => {
  const server = await start()
  try {
    return await measure(server, load)
  } finally {
    await server.stop()
  }
}

function print(name: string, figures: LoadFigures): void {
  const { perSecond, p50, p99, mainMicros, allMicros, bytesEach, lagP99 } = figures
  const lag = Number.isNaN(lagP99) ? '' : `  loop lag p99 ${lagP99.toFixed(1)} ms`
  process.stdout.write(
    `${name.padEnd(44)} ${perSecond.toFixed(0).padStart(8)}/s  PUBACK p50 ${p50.toFixed(2)} ms p99 ${p99.toFixed(2)} ms  ` +
      `CPU main ${mainMicros.toFixed(1)} us all ${allMicros.toFixed(1)} us  ${bytesEach.toFixed(0)} B/message${lag}\n`,
  )
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** Gigabytes a day at a rate of observations per second. */
const gigabytesPerDay = (bytes: number, perSecond: number): string =>
  ((bytes * perSecond * 86_400) / 1e9).toFixed(2)

export async function benchIngest(options: { quick: boolean }): Promise<void> {
  const command = layOutGateway()
  const rounds = options.quick ? 1 : 5
  const seconds = options.quick ? 3 : 8
  const closed: Load = { publishers: 100, window: 16, seconds, devices: 100, rate: 0 }
  const measured = (env: Readonly<Record<string, string>> = {}): Promise<LoadFigures> =>
    repeated(rounds, () => fresh(() => startGateway(command, env), closed))
  const percent = (part: number, whole: number): string => `${((part / whole) * 100).toFixed(0)} %`

  say('QoS 1, 100 publishers with 16 in flight, one-record SenML; server on core 0, load on core 1')
  const floor = await repeated(rounds, () => fresh(() => startMosquitto(false), closed))
  print('mosquitto without persistence', floor)
  if (!options.quick)
    print(
      'mosquitto with persistence, 1 s autosave',
      await repeated(rounds, () => fresh(() => startMosquitto(true), closed)),
    )
  const bare = await repeated(rounds, () => fresh(startBareLibraries, closed))
  print('bare libraries, acknowledged after the flush', bare)
  const ours = await measured()
  print('selvedge, acknowledged after the flush', ours)
  say(
    `ratio to bare libraries: ${percent(ours.perSecond, bare.perSecond)}  (goal 50 %; main-thread CPU goal 12 us);` +
      ` to Mosquitto: ${percent(ours.perSecond, floor.perSecond)}\n`,
  )

  say('The same with every flush slowed by 20 ms')
  const bound = (100 * 16) / 2 / 0.0205
  const slow = await measured({ SELVEDGE_FAILPOINTS: 'writer:after-commit=sleep(20)' })
  print('selvedge', slow)
  say(
    `share of the bound (half the messages in flight per flush = ${bound.toFixed(0)}/s): ` +
      `${percent(slow.perSecond, bound)}  (goal 80 %; lag p99 5 ms; PUBACK p99 80 ms)\n`,
  )

  say('Flash writes: 2,000 observations/s over 100 streams, 50 ms linger')
  const wear = await wearFigures(command, options.quick)
  print('selvedge', wear)
  const days = [10, 100, 1000].map((rate) => `${gigabytesPerDay(wear.bytesEach, rate)} GB/day at ${rate}/s`)
  say(`${days.join(', ')} when written at this grouping  (goal 250 B/observation)`)
}

async function wearFigures(command: string, quick: boolean): Promise<LoadFigures> {
  const server = await startGateway(command, { SELVEDGE_COMMIT_LINGER_MS: '50' })
  try {
    const figures = await measure(server, {
      publishers: 100,
      window: 16,
      seconds: quick ? 20 : 150,
      devices: 100,
      rate: 2000,
    })
    say(`  database file ${(statSync(join(server.folder, 'selvedge.db')).size / 1e6).toFixed(1)} MB`)
    return figures
  } finally {
    await server.stop()
  }
}
