/**
 * `npm run bench -- orchestrator`: what the proxy adds to a request, and what its cache saves. One client with one
 * connection sends blocks of requests in turns to the gateway itself and to its orchestrator, so that whatever else the
 * machine does falls on both. The CPU time per request does not depend on what else runs. With `--only amqp`,
 * notifications by AMQP alone.
 */

import { Agent, request } from 'node:http'
import { freePort } from '#test/kit/ports.ts'
import { fill } from './fill.ts'
import { benchAmqp } from './orchestrator-amqp.ts'
import { percentile, pin, processCpuSeconds } from './processes.ts'
import { layOutGateway, startGateway } from './servers.ts'
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
    say('What the proxy adds to GET by id (goal: below 0.3 ms at p50 within this gateway)')
    const ways = { direct: gateway.httpPort, 'in process': own, 'over HTTP': remote }
    const bare = await measured(rounds, Object.entries(ways), (port, i) => get(port, one(i), fresh))
    const { p50: least, cpu: leastCpu } = bare['direct']!
    for (const [name, { p50, p99, cpu: used }] of Object.entries(bare)) {
      say(`  ${name.padEnd(12)} p50 ${ms(p50)} p99 ${ms(p99)} CPU ${ms(used)} each`)
      if (name !== 'direct') say(`    adds ${ms(p50 - least)} at p50, ${ms(used - leastCpu)} of CPU`)
    }
    say('What the cache saves (goal: twice as fast)')
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
  } finally {
    agent.destroy()
    await other.stop()
    await gateway.stop()
  }
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
