/**
 * `npm run bench -- http`: reads and durable writes over HTTP against a bare Hono app on the same core, round by
 * round in turns, so that whatever else the machine does falls on both.
 */
import { fill } from './fill.ts'
import { atRest, type LoadFigures, medians, pin, underLoad } from './processes.ts'
import { layOutGateway, type Server, serverCore, startFloor, startGateway } from './servers.ts'
import { pathOf, type RequestKind } from './site.ts'

const load = new URL('./http-load.ts', import.meta.url).pathname
const floorFile = new URL('./http-floor.ts', import.meta.url).pathname
const stations = 10_000

interface Case {
  readonly title: string
  readonly kind: RequestKind
  readonly connections: number
  /** How many stations the requests are spread over. */
  readonly spread: number
  /** False where a rate alone is the goal. */
  readonly hasFloor: boolean
  readonly goal: string
  /** Where the servers run; the load is always on core 1. The goal of the writes is said of one process, not of one core. */
  readonly cores?: '0,1'
}

const cases: readonly Case[] = [
  {
    title: 'GET by id of 1,000 stations, 32 connections',
    kind: 'get',
    connections: 32,
    spread: 1000,
    hasFloor: true,
    goal: '75 % of the floor',
  },
  {
    title: 'GET by id of 10,000 stations',
    kind: 'get',
    connections: 32,
    spread: stations,
    hasFloor: true,
    goal: '75 % of the floor',
  },
  {
    title: 'PATCH attrs with observedAt, 50 clients (observations)',
    kind: 'observe',
    connections: 50,
    spread: stations,
    hasFloor: true,
    goal: '5,000/s, 12 % of the floor, aim 20 %',
  },
  {
    title: 'PATCH attrs without observedAt, 50 clients (documents)',
    kind: 'write',
    connections: 50,
    spread: stations,
    hasFloor: true,
    goal: '5,000/s, 12 % of the floor, aim 20 %',
  },
  {
    title: 'PATCH attrs with observedAt, 50 clients (observations), on both cores',
    kind: 'observe',
    connections: 50,
    spread: stations,
    hasFloor: true,
    goal: '5,000/s, 12 % of the floor, aim 20 %',
    cores: '0,1',
  },
  {
    title: 'PATCH attrs without observedAt, 50 clients (documents), on both cores',
    kind: 'write',
    connections: 50,
    spread: stations,
    hasFloor: true,
    goal: '5,000/s, 12 % of the floor, aim 20 %',
    cores: '0,1',
  },
  {
    title: 'GET list page of 20, 32 connections',
    kind: 'list',
    connections: 32,
    spread: stations,
    hasFloor: false,
    goal: '6,000/s, 120,000 entities/s',
  },
]

export async function benchHttp(options: { quick: boolean }): Promise<void> {
  const rounds = options.quick ? 1 : 5
  const roundSeconds = options.quick ? 2 : 5
  const gateway = await startGateway(layOutGateway())
  let floor: Server | undefined
  try {
    const perSecond = await fill(gateway.httpPort, stations)
    process.stdout.write(
      `${stations} stations created at ${perSecond.toFixed(0)}/s. Servers on core 0 unless said, load on core 1\n`,
    )
    const seconds = await atRest(gateway.pid)
    process.stdout.write(`waited ${seconds} s for the gateway to be at rest\n\n`)
    floor = await startFloor(floorFile, [JSON.stringify(await sampleOf(gateway.httpPort))])
    for (const each of cases) await measure(each, { gateway, floor, rounds, seconds: roundSeconds })
  } finally {
    await floor?.stop()
    await gateway.stop()
  }
}

/** One answer of ours, for the floor to repeat. */
async function sampleOf(httpPort: number): Promise<{ text: string; headers: Record<string, string> }> {
  const answer = await fetch(`http://127.0.0.1:${httpPort}${pathOf('get', 1, stations)}`)
  const headers: Record<string, string> = {}
  for (const name of ['Content-Type', 'Server', 'Link']) headers[name] = answer.headers.get(name) ?? ''
  return { text: await answer.text(), headers }
}

interface Field {
  readonly gateway: Server
  readonly floor: Server
  readonly rounds: number
  readonly seconds: number
}

async function measure(each: Case, { gateway, floor, rounds, seconds }: Field): Promise<void> {
  const { title, kind, connections, spread, hasFloor, goal, cores = String(serverCore) } = each
  for (const server of [gateway, floor]) pin(server.pid, cores)
  const run = (server: Server): Promise<LoadFigures> => {
    const argument = { port: server.httpPort, kind, connections, seconds, stations: spread, rate: 0 }
    return underLoad(server, load, [JSON.stringify(argument)])
  }
  const ours: LoadFigures[] = []
  const floors: LoadFigures[] = []
  for (let round = 0; round < rounds; round++) {
    ours.push(await run(gateway))
    if (hasFloor) floors.push(await run(floor))
  }
  process.stdout.write(`${title}\n`)
  print('selvedge', medians(ours))
  if (floors.length > 0) {
    const [mine, bare] = [medians(ours), medians(floors)]
    print('bare Hono (the floor)', bare)
    const share = (mine.perSecond / bare.perSecond) * 100
    const cpu = (bare.allMicros / mine.allMicros) * 100
    process.stdout.write(`  ratio: ${share.toFixed(0)} % of the answers, ${cpu.toFixed(0)} % by CPU each`)
  }
  process.stdout.write(`  (goal ${goal})\n\n`)
}

function print(name: string, { perSecond, p50, p99, mainMicros, allMicros, bytesEach }: LoadFigures): void {
  process.stdout.write(
    `  ${name.padEnd(24)} ${perSecond.toFixed(0).padStart(7)}/s  p50 ${p50.toFixed(2)} ms p99 ${p99.toFixed(2)} ms  ` +
      `CPU main ${mainMicros.toFixed(1)} us all ${allMicros.toFixed(1)} us  ${bytesEach.toFixed(0)} B written each\n`,
  )
}
