/**
 * `npm run bench -- orchestrator`: what the proxy adds to a request, and what its cache saves. One client with one
 * connection sends blocks of requests in turns to the gateway itself and to its orchestrator, so that whatever else the
 * machine does falls on both. The CPU time per request does not depend on what else runs. Then 32 connections repeat
 * one request as fast as they are answered. With `--only amqp`, notifications by AMQP alone; with `--only cache`, the
 * cache alone.
 */

import { Agent, request } from 'node:http'
import { freePort } from '#test/kit/ports.ts'
import { fill } from './fill.ts'
import { benchAmqp } from './orchestrator-amqp.ts'
import { type LoadFigures, medians, percentile, pin, processCpuSeconds, underLoad } from './processes.ts'
import { layOutGateway, type Server, startGateway } from './servers.ts'
import { stationId, stationType } from './site.ts'

const stations = 2000
const entities = '/ngsi-ld/v1/entities'
const fresh = { 'Cache-Control': 'no-cache' }
const say = (line: string): void => void process.stdout.write(`${line}\n`)

interface Options {
  readonly quick: boolean
  readonly only: string | undefined
}

export async function benchOrchestrator({ quick, only }: Options): Promise<void> {
  if (only === undefined || only === 'amqp') await benchAmqp(quick)
  if (only === 'amqp') return
  const rounds = quick ? 300 : 3000
  const command = layOutGateway()
  const [own, remote] = [await freePort(), await freePort()]
  const gateway = await startGateway(command, { SELVEDGE_ORCHESTRATOR_PORT: String(own) })
  const other = await startGateway(command, {
    SELVEDGE_ORCHESTRATOR_PORT: String(remote),
    NGSILD_BROKER_URL: `http://127.0.0.1:${gateway.httpPort}`,
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const get = createGet(agent)
  try {
    pin(process.pid, '1')
    await fill(gateway.httpPort, stations)
    say(`${stations} stations; servers on core 0, the client on core 1, ${rounds} rounds\n`)
    const one = (i: number): string => `${entities}/${stationId(i % stations)}`
    const list = (limit: number): string => `${entities}?type=${stationType}&limit=${limit}`
    const cpu = (): number => processCpuSeconds(gateway.pid) + processCpuSeconds(other.pid)
    const measured = createTurns(cpu)
    if (only !== 'cache') {
      say('What the proxy adds to GET by id (goal: below 0.3 ms at p50 within this gateway)')
      const ways = { direct: gateway.httpPort, 'in process': own, 'over HTTP': remote }
      const bare = await measured(rounds, Object.entries(ways), (port, i) => get(port, one(i), fresh))
      const { p50: least, cpu: leastCpu } = bare['direct']!
      for (const [name, { p50, p99, cpu: used }] of Object.entries(bare)) {
        say(`  ${name.padEnd(12)} p50 ${ms(p50)} p99 ${ms(p99)} CPU ${ms(used)} each`)
        if (name !== 'direct') say(`    adds ${ms(p50 - least)} at p50, ${ms(used - leastCpu)} of CPU`)
      }
    }
    say('What the cache saves with one connection (goal: twice as fast)')
    for (const [name, port] of [['in process', own] as const, ['over HTTP', remote] as const]) {
      for (const limit of [20, 100, 1000]) {
        const path = list(limit)
        const kinds = Object.entries({
          uncached: { path, headers: fresh },
          cached: { path, headers: {} },
          shortest: { path: '/version', headers: {} },
        })
        const repeats = Math.max(50, Math.ceil((10 * rounds) / limit))
        const found = await measured(repeats, kinds, ({ path, headers }) => get(port, path, headers))
        const [slow, fast, least] = [found['uncached']!, found['cached']!, found['shortest']!]
        say(
          `  ${name}, list of ${limit}: p50 ${ms(slow.p50)} and ${ms(fast.p50)}: ${(slow.p50 / fast.p50).toFixed(1)} times as fast; ` +
            `CPU ${ms(slow.cpu)} and ${ms(fast.cpu)}: a ${(slow.cpu / fast.cpu).toFixed(1)}th; ` +
            `the shortest response takes ${ms(least.p50)}, CPU ${ms(least.cpu)}`,
        )
      }
    }
    await compareLoads(gateway, own, quick)
  } finally {
    agent.destroy()
    await other.stop()
    await gateway.stop()
  }
}

const load = new URL('./http-load.ts', import.meta.url).pathname

/** Requests that read a page as it is stored, and some that search. */
const loadPaths: Readonly<Record<string, string>> = {
  'list of 20': `type=${stationType}&limit=20`,
  'list of 100': `type=${stationType}&limit=100`,
  'list of 1,000': `type=${stationType}&limit=1000`,
  'q, 20 of about 1,000 matches, counted': `type=${stationType}&q=humidity>50&limit=20&count=true`,
  'near, 20 ordered by distance': `type=${stationType}&georel=near;maxDistance==50000&geometry=Point&coordinates=[11,51]&orderBy=distance&limit=20`,
  'ordered by a value, 20': `type=${stationType}&orderBy=temperature&limit=20`,
}

/** Requests per second and CPU each by 32 connections: uncached, cached, and revalidated with 304. */
async function compareLoads(gateway: Server, own: number, quick: boolean): Promise<void> {
  const seconds = quick ? 1 : 2
  const run = (
    port: number,
    path: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<LoadFigures> => {
    const argument = { port, connections: 32, seconds, rate: 0, get: { path, headers } }
    return underLoad(gateway, load, [JSON.stringify(argument)])
  }
  const line = ({ perSecond, mainMicros }: LoadFigures): string =>
    `${perSecond.toFixed(0)}/s, CPU ${mainMicros.toFixed(1)} us`
  say('What the cache saves under load, 32 connections (goal: twice as fast)')
  for (const [name, query] of Object.entries(loadPaths)) {
    const path = encodeURI(`${entities}?${query}`)
    const kinds: Readonly<Record<string, Readonly<Record<string, string>>>> = {
      uncached: fresh,
      cached: {},
      revalidated: { 'If-None-Match': await tagOf(own, path) },
    }
    const found: Readonly<Record<string, LoadFigures[]>> = { uncached: [], cached: [], revalidated: [] }
    for (let round = 0; round < (quick ? 1 : 3); round++)
      for (const [kind, headers] of Object.entries(kinds)) found[kind]!.push(await run(own, path, headers))
    const slow = medians(found['uncached']!)
    say(`  ${name}: uncached ${line(slow)}`)
    for (const kind of ['cached', 'revalidated'] as const) {
      const fast = medians(found[kind]!)
      const [rate, cpu] = [fast.perSecond / slow.perSecond, slow.mainMicros / fast.mainMicros]
      say(`    ${kind} ${line(fast)}: ${rate.toFixed(1)} times by requests/s, ${cpu.toFixed(1)} by CPU`)
    }
  }
  const path = `/orchestrator${encodeURI(`${entities}?${loadPaths['list of 20']}`)}`
  await tagOf(gateway.httpPort, path)
  say(`  list of 20 at the main port: cached ${line(await run(gateway.httpPort, path, {}))}`)
}

/** Requests a list once, so that it is cached, and returns its entity tag. */
async function tagOf(port: number, path: string): Promise<string> {
  const { status, headers } = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { Accept: 'application/json', 'Accept-Encoding': 'identity' },
  })
  const tag = headers.get('etag')
  if (status !== 200 || tag === null) throw new TypeError(`status ${status} of ${path}`)
  return tag
}

const ms = (value: number): string => `${value.toFixed(3)} ms`

interface Times {
  readonly p50: number
  readonly p99: number
  /** CPU of all servers per request, ms. */
  readonly cpu: number
}

const block = 25

/** Sends blocks of requests of each kind in turns, after some that are not counted. @param cpu seconds so far. */
function createTurns(cpu: () => number) {
  return async <T>(
    requests: number,
    kinds: readonly (readonly [name: string, kind: T])[],
    send: (kind: T, i: number) => Promise<void>,
  ): Promise<Record<string, Times>> => {
    const times = new Map<string, number[]>(kinds.map(([name]) => [name, []]))
    const used = new Map<string, number>()
    const blocks = Math.ceil(requests / block)
    const unmeasured = Math.ceil(blocks / 4)
    for (let turn = 0; turn < blocks + unmeasured; turn++) {
      for (const [name, kind] of kinds) {
        const before = cpu()
        for (let i = 0; i < block; i++) {
          const begin = performance.now()
          await send(kind, turn * block + i)
          if (turn >= unmeasured) times.get(name)!.push(performance.now() - begin)
        }
        if (turn >= unmeasured) used.set(name, (used.get(name) ?? 0) + cpu() - before)
      }
    }
    return Object.fromEntries(
      [...times].map(([name, all]) => [
        name,
        {
          p50: percentile(all, 0.5),
          p99: percentile(all, 0.99),
          cpu: (used.get(name)! * 1000) / all.length,
        },
      ]),
    )
  }
}

function createGet(agent: Agent) {
  return (port: number, path: string, headers: Readonly<Record<string, string>>): Promise<void> =>
    new Promise((resolve, reject) => {
      request({ port, path, headers, agent }, (response) => {
        if (response.statusCode !== 200) reject(new TypeError(`status ${response.statusCode} of ${path}`))
        response.on('end', resolve).on('error', reject).resume()
      })
        .on('error', reject)
        .end()
    })
}
