/**
 * `npm run bench -- query`: searches over 100,000 stations, end to end over HTTP by one client, at rest and while a
 * thousand entities are written each second, the gateway on both cores and the loads on one of them; and one entity read inside
 * the store. The floor is the same documents read by better-sqlite3 in a process that does nothing else.
 */
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { createEntities } from '#store/entities/entity-rows.ts'
import { openReader } from '#store/file/database.ts'
import { fill } from './fill.ts'
import { type LoadFigures, medians, percentile, pin, underLoad } from './processes.ts'
import { layOutGateway, removeFolder, type Server, startGateway, temporaryFolder } from './servers.ts'
import { pathOf, type RequestKind, stationId } from './site.ts'

const load = new URL('./http-load.ts', import.meta.url).pathname
const searches = [
  { kind: 'equal', title: 'q=zone==z' },
  { kind: 'range', title: 'q=temperature==a..b' },
  { kind: 'between', title: 'q=temperature>a;temperature<b' },
  { kind: 'near', title: 'georel=near, 6 km' },
] as const
const writings = [
  { title: 'at rest', writes: undefined, spread: 0 },
  { title: '1,000/s observations of 1,000 stations', writes: 'observe', spread: 1000 },
  { title: '1,000/s observations of any station', writes: 'observe', spread: Number.POSITIVE_INFINITY },
  { title: '1,000/s PATCHes of 1,000 documents', writes: 'write', spread: 1000 },
] as const
const writesPerSecond = 1000
const gatewayCores = '0,1'

export async function benchQuery(options: { quick: boolean }): Promise<void> {
  const stations = options.quick ? 20_000 : 100_000
  const command = layOutGateway()
  const first = await startGateway(command)
  const perSecond = await fill(first.httpPort, stations)
  process.stdout.write(`${stations} stations created at ${perSecond.toFixed(0)}/s by batches of 500\n\n`)
  await first.stop({ keep: true })
  const { folder } = first
  try {
    insideTheStore(join(folder, 'selvedge.db'), stations)
    const gateway = await startGateway(command, {}, folder)
    // A closed loop of one client leaves a core to the writer thread while it waits; on a board there are four.
    pin(gateway.pid, gatewayCores)
    process.stdout.write(`gateway on cores ${gatewayCores}, client and writers on core 1\n`)
    try {
      await floors(gateway, join(folder, 'selvedge.db'), stations)
      for (const writing of writings) await measure(gateway, writing, { stations, quick: options.quick })
    } finally {
      await gateway.stop()
    }
  } finally {
    removeFolder(folder)
  }
}

/** Reads of one entity by the store's own code, on a copy of the file; the floor is its bare statement. */
function insideTheStore(file: string, stations: number): void {
  const folder = temporaryFolder()
  const copy = join(folder, 'copy.db')
  copyFileSync(file, copy)
  const database = openReader(copy)
  const entities = createEntities(database)
  const bare = database.prepare('SELECT doc FROM entity WHERE id = ?').pluck()
  const ours = timed((id) => entities.byId(id), stations)
  const floor = timed((id) => bare.get(id), stations)
  process.stdout.write(
    `GET by id inside the store: p50 ${ours.p50.toFixed(1)} us p99 ${ours.p99.toFixed(1)} us; ` +
      `bare statement (the floor) p50 ${floor.p50.toFixed(1)} us p99 ${floor.p99.toFixed(1)} us; ` +
      `ratio ${(floor.p50 / ours.p50).toFixed(2)} (goal 20 us)\n\n`,
  )
  database.close()
  removeFolder(folder)
}

function timed(read: (id: string) => unknown, stations: number): { p50: number; p99: number } {
  const micros: number[] = []
  for (let n = 0; n < 30_000; n++) {
    const id = stationId((n * 7919) % stations)
    const from = performance.now()
    read(id)
    if (n >= 10_000) micros.push((performance.now() - from) * 1000)
  }
  return { p50: percentile(micros, 0.5), p99: percentile(micros, 0.99) }
}

/** What each search selects, and how long better-sqlite3 takes to read the page's documents by their ids. */
async function floors(gateway: Server, file: string, stations: number): Promise<void> {
  const database = new BetterSqlite3(file, { readonly: true })
  const read = database
    .prepare('SELECT doc FROM entity WHERE id IN (SELECT value FROM json_each(?)) ORDER BY rid')
    .pluck()
  for (const { kind, title } of searches) {
    const pages: string[] = []
    const counts: number[] = []
    for (let n = 0; n < 40; n++) {
      const answer = await fetch(
        `http://127.0.0.1:${gateway.httpPort}${encodeURI(pathOf(kind, n, stations))}&count=true`,
      )
      counts.push(Number(answer.headers.get('NGSILD-Results-Count')))
      pages.push(JSON.stringify(((await answer.json()) as { id: string }[]).map(({ id }) => id)))
    }
    const millis: number[] = []
    for (let n = 0; n < 800; n++) {
      const from = performance.now()
      read.all(pages[n % pages.length])
      millis.push(performance.now() - from)
    }
    const [least, most] = [Math.min(...counts), Math.max(...counts)]
    process.stdout.write(
      `${title}: selects ${least} to ${most}; the same documents by better-sqlite3 alone (the floor): ` +
        `p50 ${percentile(millis, 0.5).toFixed(2)} ms p99 ${percentile(millis, 0.99).toFixed(2)} ms\n`,
    )
  }
  database.close()
}

interface Field {
  readonly stations: number
  readonly quick: boolean
}

async function measure(
  gateway: Server,
  { title, writes, spread }: (typeof writings)[number],
  { stations, quick }: Field,
): Promise<void> {
  const seconds = quick ? 3 : 8
  const rounds = quick ? 1 : 5
  const run = (
    kind: RequestKind,
    more: { connections: number; seconds: number; rate: number; stations: number },
  ) => underLoad(gateway, load, [JSON.stringify({ port: gateway.httpPort, kind, ...more })])
  process.stdout.write(`\n${title}\n`)
  for (const search of searches) {
    const figures: LoadFigures[] = []
    let written = 0
    for (let round = 0; round < rounds; round++) {
      const writer =
        writes === undefined
          ? undefined
          : run(writes, {
              connections: 16,
              seconds: seconds + 3,
              rate: writesPerSecond,
              stations: Math.min(spread, stations),
            })
      figures.push(await run(search.kind, { connections: 1, seconds, rate: 0, stations }))
      written = (await writer)?.perSecond ?? 0
    }
    const { p50, p99, perSecond, mainMicros } = medians(figures)
    process.stdout.write(
      `  ${search.title.padEnd(32)} p50 ${p50.toFixed(2)} ms p99 ${p99.toFixed(2)} ms, ${perSecond.toFixed(0)}/s` +
        (written > 0
          ? `, beside ${written.toFixed(0)} writes/s`
          : `, ${mainMicros.toFixed(0)} us of the main thread each`) +
        '  (goal p50 1 ms, p99 5 ms)\n',
    )
  }
}
