/**
 * `npm run bench -- history`: twelve meters with a day of one value a second each, a million values in all. How much
 * memory they cost, and how many days by the hour are summed up per second, at last with two corrections. The floor is better-sqlite3 reading, in a
 * process that does nothing else, the chunks that lie across the ends of hours, and what is known of all others.
 */
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import BetterSqlite3 from 'better-sqlite3'
import { keySql, slotMax, slotOf } from '#store/chunks/chunk-key.ts'
import { correctMeter, createMeters, daySeconds, fillMeters, hoursOf, meters } from './meters.ts'
import { type LoadFigures, medians, memory, percentile, underLoad } from './processes.ts'
import { layOutGateway, removeFolder, type Server, startGateway } from './servers.ts'
import type { RequestKind } from './site.ts'

const load = new URL('./http-load.ts', import.meta.url).pathname
/** Looks at days before memory is measured, so that what differs is how much history there is. */
const looks = 240

export async function benchHistory(options: { quick: boolean }): Promise<void> {
  const command = layOutGateway()
  const first = await startGateway(command)
  const { folder } = first
  try {
    await createMeters(first.httpPort)
    await fillMeters(first.httpPort, 0, 1)
    await first.stop({ keep: true })
    const one = await restarted(command, folder, 1)
    const perSecond = await fillMeters(one.httpPort, 1, meters)
    await pause(options.quick ? 5000 : 75_000)
    await look(one, meters)
    const written = memory(one.pid).resident
    await one.stop({ keep: true })
    const all = await restarted(command, folder, meters)
    process.stdout.write(
      `${daySeconds * meters} values, all but a day of one meter written at ${perSecond.toFixed(0)}/s\n` +
        `resident after a start and ${looks} looks: with a day of one meter ${mega(one.bytes)}, with a day of ${meters} ` +
        `${mega(all.bytes)}, ${mega(all.bytes - one.bytes)} more  (goal 10 MB); ` +
        `where they were written ${mega(written)}\n\n`,
    )
    try {
      const floor = floorOf(join(folder, 'selvedge.db'))
      const { quick } = options
      let plain = 0
      for (const kind of ['hours', 'moving-hours'] as const) {
        const perSecond = await measure(all, { kind, meters: 1, floor, quick })
        if (kind === 'hours') plain = perSecond
        await measure(all, { kind, meters, floor, quick })
      }
      await correctMeter(all.httpPort)
      process.stdout.write(
        `hourly aggregation with one corrected and one erased instance (without: ${plain.toFixed(0)}/s):\n`,
      )
      await measure(all, { kind: 'hours', meters: 1, floor, quick })
      process.stdout.write(`resident after that ${mega(memory(all.pid).resident)}\n`)
    } finally {
      await all.stop({ keep: true })
    }
  } finally {
    removeFolder(folder)
  }
}

/** The gateway anew, after so many looks at the first meters. */
async function restarted(
  command: string,
  folder: string,
  count: number,
): Promise<Server & { readonly bytes: number }> {
  const server = await startGateway(command, {}, folder)
  await look(server, count)
  await pause(2000)
  return { ...server, bytes: memory(server.pid).resident }
}

async function look({ httpPort }: Server, count: number): Promise<void> {
  for (let n = 0; n < looks; n++) {
    const answer = await fetch(`http://127.0.0.1:${httpPort}${hoursOf(n, count)}`)
    if (!answer.ok) throw new TypeError(`refused with ${answer.status}: ${await answer.text()}`)
    await answer.arrayBuffer()
  }
}

/** CPU microseconds to read a day of chunks: statistics of all, and bodies of those across the ends of hours. */
function floorOf(file: string): number {
  const database = new BetterSqlite3(file, { readonly: true })
  const streams = database.prepare<[], number>('SELECT s FROM stream').pluck().all()
  const span = `k BETWEEN ${keySql('?', '0')} AND ${keySql('?', String(slotMax))}`
  const statistics = database.prepare<[number, number], { t0: number; t1: number }>(
    `SELECT t0, t1, count, min, max, sum, sumsq FROM chunk WHERE ${span} ORDER BY k`,
  )
  const body = database.prepare(`SELECT codec, shapes, body FROM chunk WHERE k = ${keySql('?', '?')}`)
  const hour = (ms: number): number => Math.floor(ms / 3_600_000)
  const micros: number[] = []
  let split = 0
  for (let n = 0; n < 600; n++) {
    const s = streams[(n * 7) % streams.length]!
    const from = process.cpuUsage()
    const across = statistics.all(s, s).filter(({ t0, t1 }) => hour(t0) !== hour(t1))
    for (const { t0 } of across) body.get(s, slotOf(t0))
    const { user, system } = process.cpuUsage(from)
    micros.push(user + system)
    split = across.length
  }
  database.close()
  const floor = percentile(micros, 0.5)
  process.stdout.write(
    `one day by better-sqlite3 alone (the floor): ${floor.toFixed(0)} us of CPU, ${split} chunks read whole\n\n`,
  )
  return floor
}

/** Prints the figures, and returns how many were answered per second. */
async function measure(
  server: Server,
  { kind, meters: count, floor, quick }: { kind: RequestKind; meters: number; floor: number; quick: boolean },
): Promise<number> {
  const figures: LoadFigures[] = []
  const argument = { port: server.httpPort, kind, connections: 8, stations: count, rate: 0 }
  for (let round = 0; round < (quick ? 1 : 5); round++)
    figures.push(await underLoad(server, load, [JSON.stringify({ ...argument, seconds: quick ? 3 : 6 })]))
  const { perSecond, p50, p99, mainMicros, allMicros } = medians(figures)
  process.stdout.write(
    `one day by the hour, ${count === 1 ? 'one meter' : `any of ${count}`}, ${kind === 'hours' ? 'the same day' : 'another window each time'}: ${perSecond.toFixed(0)}/s  p50 ${p50.toFixed(1)} ms ` +
      `p99 ${p99.toFixed(1)} ms  CPU main ${mainMicros.toFixed(0)} us all ${allMicros.toFixed(0)} us, ` +
      `by it ${(1e6 / mainMicros).toFixed(0)}/s; ratio ${(floor / mainMicros).toFixed(2)}  (goal 200/s)\n`,
  )
  return perSecond
}

const mega = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MB`
