/**
 * The campaign of slow readers: a real gateway holds entities of 1 MB; many clients in another process request them and read
 * nothing. Measures the peak of its resident memory, as the kernel accounts it, until all of these clients were dealt with.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import type { SlowClients } from './slow-clients.ts'

export interface SlowReaderFigures {
  readonly startBytes: number
  readonly peakBytes: number
  /** Slow clients that were disconnected; answers that were refused; answers that were not. */
  readonly disconnected: number
  readonly refused: number
  readonly answered: number
  readonly ordinary: OrdinaryFigures
}

/** How an ordinary client was answered meanwhile; times in ms. */
interface OrdinaryFigures {
  readonly answers: number
  readonly failures: number
  readonly medianMs: number
  readonly longestMs: number
}

const entities = 30
const megabyte = 1_000_000
const entitiesPath = '/ngsi-ld/v1/entities'
/** The gateway has dealt with all clients when nothing is unsent, nor was for so long. */
const quietMs = 5000
const campaignMs = 300_000

export async function runSlowReaders({ clients }: { readonly clients: number }): Promise<SlowReaderFigures> {
  const gateway = await startGatewayProcess()
  let crowd: ChildProcess | undefined
  try {
    await createEntities(gateway)
    // A quiet gateway gives back the memory that this took.
    await sleep(6000)
    const before = await counts(gateway)
    const startBytes = resetPeak(gateway)
    const ordinary = startOrdinaryClient(gateway)
    await ordinary.connected
    crowd = await startCrowd({ port: gateway.httpPort, clients })
    await settled(gateway)
    const after = await counts(gateway)
    const peakBytes = memoryOf(gateway, 'VmHWM')
    const figures = await ordinary.stop()
    const [disconnected, refused, requests] = after.map((count, i) => count - before[i]!)
    const answered = requests! - refused! - figures.answers
    return {
      startBytes,
      peakBytes,
      disconnected: disconnected!,
      refused: refused!,
      answered,
      ordinary: figures,
    }
  } finally {
    crowd?.kill('SIGKILL')
    await gateway.stop()
  }
}

async function createEntities(gateway: GatewayProcess): Promise<void> {
  const http = httpClient(gateway.httpUrl)
  const create = async (body: object): Promise<void> => {
    const { status, text } = await http.send('POST', entitiesPath, body)
    if (status !== 201) throw new Error(`the entity was not created: ${status} ${text.slice(0, 200)}`)
  }
  for (let i = 0; i < entities; i++) {
    const value = String(i).padEnd(megabyte, 'x')
    await create({ id: `urn:big:${i}`, type: 'Big', text: { type: 'Property', value } })
  }
  for (let i = 0; i < 10; i++)
    await create({ id: `urn:small:${i}`, type: 'Small', n: { type: 'Property', value: i } })
}

async function startCrowd(task: SlowClients): Promise<ChildProcess> {
  const file = new URL('slow-clients.ts', import.meta.url).pathname
  const stdio = ['ignore', 'pipe', 'inherit'] as const
  const child = spawn(process.execPath, [file, JSON.stringify(task)], { stdio: [...stdio] })
  process.once('exit', () => child.kill('SIGKILL'))
  await new Promise<void>((resolve, reject) => {
    child.stdout!.once('data', () => resolve())
    child.once('exit', (code) => reject(new Error(`the slow clients ended with ${code}`)))
  })
  return child
}

/** Waits until the gateway holds nothing unsent any more. */
async function settled(gateway: GatewayProcess): Promise<void> {
  const until = performance.now() + campaignMs
  let busyAt = performance.now()
  while (performance.now() < until && performance.now() - busyAt < quietMs) {
    await sleep(250)
    if ((await metricsOf(gateway, ['selvedge_unsent_bytes']))[0]! > 0) busyAt = performance.now()
  }
}

const counts = (gateway: GatewayProcess): Promise<readonly number[]> =>
  metricsOf(gateway, [
    'selvedge_clients_stalled_total',
    'selvedge_http_errors_total',
    'selvedge_http_requests_total',
  ])

/** A connection that was there before the slow clients take all that are allowed. */
const watching = new Agent({ keepAlive: true, maxSockets: 1 })

async function metricsOf(gateway: GatewayProcess, names: readonly string[]): Promise<readonly number[]> {
  const { text } = await get(`${gateway.httpUrl}/metrics`, watching)
  return names.map((name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 0))
}

function get(url: string, agent: Agent): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      incoming.on('error', reject)
      incoming.on('end', () => resolve({ status: incoming.statusCode!, text }))
    })
    outgoing.on('error', reject).end()
  })
}

/** Requests a page of small entities again and again over one connection. */
function startOrdinaryClient(gateway: GatewayProcess) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const times: number[] = []
  let failures = 0
  let isStopped = false
  const ask = async (): Promise<void> => {
    const sentAt = performance.now()
    const { status } = await get(`${gateway.httpUrl}${entitiesPath}?type=Small`, agent).catch(() => ({
      status: 0,
    }))
    times.push(performance.now() - sentAt)
    if (status !== 200) failures++
  }
  const connected = ask()
  const run = async (): Promise<void> => {
    for (await connected; !isStopped; await sleep(20)) await ask()
  }
  const running = run()
  return {
    connected,
    async stop(): Promise<OrdinaryFigures> {
      isStopped = true
      await running
      agent.destroy()
      times.sort((a, b) => a - b)
      return {
        answers: times.length - failures,
        failures,
        medianMs: times[Math.floor(times.length / 2)]!,
        longestMs: times.at(-1)!,
      }
    },
  }
}

const memoryOf = ({ pid }: GatewayProcess, field: 'VmRSS' | 'VmHWM'): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) *
  1024

/** Lets the kernel begin anew with the peak of resident memory; returns what it is now. */
function resetPeak(gateway: GatewayProcess): number {
  writeFileSync(`/proc/${gateway.pid}/clear_refs`, '5')
  return memoryOf(gateway, 'VmRSS')
}
