/**
 * `npm run bench -- quality [--quick] [--only load|visible|silent|memory]`: what the quality analyser costs beside ingest of
 * 1,000 streams with an observation a second each, and how soon a quality follows its observation. The floor is the same
 * gateway without the analyser in the same run. Memory is that of 10,000 streams in this process.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connectAsync } from 'mqtt'
import { loopLag, percentile, processCpuSeconds, startPinned, writtenBytes } from './processes.ts'
import { bytesPerStream } from './quality-memory.ts'
import { measureSilence, silentIntervalSeconds, silentStreams } from './quality-silence.ts'
import { end, layOutGateway, type Server, startGateway, temporaryFolder } from './servers.ts'

const load = new URL('./mqtt-load.ts', import.meta.url).pathname
const streams = 1000
const publishers = 50
const say = (line: string): void => void process.stdout.write(`${line}\n`)

interface Options {
  readonly quick: boolean
  readonly only: string | undefined
}

export async function benchQuality({ quick, only }: Options): Promise<void> {
  if (only === undefined || only === 'memory') {
    say(`memory of a stream: ${(await bytesPerStream(quick ? 2000 : 10_000)).toFixed(0)} B  (goal 2,048)`)
  }
  if (only === 'memory') return
  const command = layOutGateway()
  if (only === undefined || only === 'silent') await silence(command)
  if (only === 'silent') return
  if (only !== 'visible')
    await compareCosts(command, quick ? 20 : 60, {
      what: 'the analyser',
      without: { quality: { enabled: false }, faults: { enabled: false } },
      with: { quality: { enabled: true }, faults: { enabled: false } },
    })
  if (only !== 'load') await visibility(command, quick ? 100 : 500)
}

/** The streams of one place and label, so each has as many neighbours as it can. */
async function startSite(
  command: string,
  plugins: object,
  { count, updateInterval }: { readonly count: number; readonly updateInterval: number } = {
    count: streams,
    updateInterval: 1,
  },
): Promise<Server> {
  const folder = temporaryFolder()
  const file = join(folder, 'selvedge.json')
  const deviceOf = (i: number) => ({
    location: [10 + (i % 40) / 1000, 56 + Math.floor(i / 40) / 1000],
    fields: { temp: { label: 'temperature', updateInterval } },
  })
  const devices = Object.fromEntries(Array.from({ length: count }, (_, i) => [`d${i}`, deviceOf(i)]))
  const probe = { fields: { temp: { label: 'temperature', updateInterval: 1 } } }
  writeFileSync(file, JSON.stringify({ ...plugins, provisioning: { devices: { ...devices, probe } } }))
  return startGateway(command, { SELVEDGE_CONFIG: file }, folder)
}

interface Cost {
  /** Of one core. */
  readonly share: number
  readonly bytesEach: number
  readonly lagP99: number
}

/** One load without a pause, which would be silence. Measures a multiple of the 10 s between two writes. */
async function measure(server: Server, seconds: number): Promise<Cost> {
  const args = [server.port, publishers, 1, 3600, streams, streams, 'live'].map(String)
  const child = startPinned(1, [process.execPath, load, ...args])
  // New devices, and the ten slots of 10 s that the first concordance needs.
  await pause(120_000)
  await loopLag(server.httpPort)
  const [cpu, bytes, begin] = [processCpuSeconds(server.pid), writtenBytes(server.pid), performance.now()]
  await pause(seconds * 1000)
  const elapsed = (performance.now() - begin) / 1000
  const figures = {
    share: ((processCpuSeconds(server.pid) - cpu) / elapsed) * 100,
    bytesEach: (writtenBytes(server.pid) - bytes) / (elapsed * streams),
    lagP99: await loopLag(server.httpPort),
  }
  await end(child)
  return figures
}

/** Prints the cost of a component beside ingest; settings of a gateway without and with it. */
export async function compareCosts(
  command: string,
  seconds: number,
  settings: { readonly what: string; readonly without: object; readonly with: object },
): Promise<void> {
  const { what } = settings
  const figures: Cost[] = []
  for (const plugins of [settings.without, settings.with]) {
    const server = await startSite(command, plugins)
    try {
      figures.push(await measure(server, seconds))
    } finally {
      await server.stop()
    }
  }
  const [floor, ours] = figures as [Cost, Cost]
  say(`${streams} streams with an observation a second each`)
  say(
    `CPU: ingest ${floor.share.toFixed(1)} % of a core, with ${what} ${ours.share.toFixed(1)} %: ` +
      `${(ours.share - floor.share).toFixed(1)} % above ingest  (goal 10 %)`,
  )
  say(
    `flash: ingest ${floor.bytesEach.toFixed(0)} B/observation, with ${what} ${ours.bytesEach.toFixed(0)}: ` +
      `${(ours.bytesEach - floor.bytesEach).toFixed(0)} B above ingest`,
  )
  say(`event loop p99: ${floor.lagP99.toFixed(1)} ms without, ${ours.lagP99.toFixed(1)} ms with`)
}

async function silence(command: string): Promise<void> {
  const site = { count: silentStreams, updateInterval: silentIntervalSeconds }
  const server = await startSite(command, { quality: { enabled: true }, faults: { enabled: false } }, site)
  try {
    await measureSilence(server)
  } finally {
    await server.stop()
  }
}

/** A site with the rate limit off, then one with the usual limit, of which changed rated values are observed. */
async function visibility(command: string, probes: number): Promise<void> {
  const faults = { enabled: false }
  const unlimited = await startSite(command, { quality: { enabled: true, writeIntervalMs: 0 }, faults })
  await visibilityAt(unlimited, probes, everyFigure)
  const usual = await startSite(command, { quality: { enabled: true }, faults })
  await visibilityAt(usual, probes, ratedValue)
}

/** Values of the observed stream, and the figure that changes with each of its observations. */
interface Probe {
  readonly what: string
  valueOf(i: number): number
  readonly figure: string
  figureOf(i: number): number
}

const intervalMs = (i: number): number => 2000 + i
const everyFigure: Probe = {
  what: 'a quality visible after its observation, rate limit off',
  valueOf: () => 20,
  figure: 'frequency',
  figureOf: (i) => intervalMs(i) / 1000,
}
/** Every other value is beyond the usual range. */
const ratedValue: Probe = {
  what: 'a changed rated value visible after its observation',
  valueOf: (i) => (i % 2 === 0 ? 20 : 99),
  figure: 'plausibility',
  figureOf: (i) => (i % 2 === 0 ? 1 : 0),
}

/** Observations of one more stream, at rest and beside load, until its quality shows each. */
async function visibilityAt(server: Server, probes: number, observed: Probe): Promise<void> {
  const publishing = [server.port, publishers, 1, 3600, streams, streams, 'live'].map(String)
  for (const isLoaded of [false, true]) {
    const child = isLoaded ? startPinned(1, [process.execPath, load, ...publishing]) : undefined
    try {
      // New devices, ten slots of 10 s for the first concordance, and the rated values that change with it.
      if (isLoaded) await pause(150_000)
      const times = await probe(server, probes, observed)
      say(
        `${observed.what}, ${isLoaded ? `beside ${streams} observations/s` : 'at rest'}: ` +
          `${[0.5, 0.9, 0.95, 0.99].map((share) => `p${share * 100} ${percentile(times, share).toFixed(0)} ms`).join(', ')}, ` +
          `longest ${Math.max(...times).toFixed(0)} ms of ${times.length}  (goal 500)`,
      )
    } finally {
      if (child !== undefined) await end(child)
    }
  }
  await server.stop()
}

let probeTime = Date.now() - 86_400_000
/** Ends the probes of a gateway that is far behind. */
const probingMs = 120_000

async function probe({ port, httpPort }: Server, count: number, observed: Probe): Promise<number[]> {
  const client = await connectAsync(`mqtt://127.0.0.1:${port}`)
  const times: number[] = []
  let id: string | undefined
  const until = performance.now() + probingMs
  for (let i = 0; i < count + 1 && performance.now() < until; i++) {
    probeTime += intervalMs(i)
    const payload = JSON.stringify([{ bn: 'probe:', n: 'temp', v: observed.valueOf(i), t: probeTime / 1000 }])
    const sentAt = performance.now()
    await client.publishAsync('senml/probe', payload, { qos: 1 })
    while (id === undefined) id = await probeQuality(httpPort)
    while (i > 0 && (await absoluteOf(httpPort, id, observed.figure)) !== observed.figureOf(i)) await pause(2)
    if (i > 0) times.push(performance.now() - sentAt)
    // Spread over several time slots, in which all streams are compared at once.
    await pause(300)
  }
  await client.endAsync()
  return times
}

async function probeQuality(httpPort: number): Promise<string | undefined> {
  const pattern = encodeURIComponent('probe')
  const found = (await get(
    httpPort,
    `/ngsi-ld/v1/entities?type=https%3A%2F%2Fw3id.org%2Fiot%2Fqoi%23Quality&idPattern=${pattern}`,
  )) as { id: string }[]
  return found[0]?.id
}

async function absoluteOf(httpPort: number, id: string, figure: string): Promise<unknown> {
  const qoi = 'https://w3id.org/iot/qoi#'
  const entity = (await get(httpPort, `/ngsi-ld/v1/entities/${encodeURIComponent(id)}`)) as Record<
    string,
    Record<string, { value: unknown } | undefined> | undefined
  >
  return entity[`${qoi}${figure}`]?.[`${qoi}hasAbsoluteValue`]?.value
}

async function get(httpPort: number, path: string): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${httpPort}${path}`)
  if (!answer.ok) throw new TypeError(`${path} was answered with ${answer.status}`)
  return answer.json()
}
