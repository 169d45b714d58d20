/**
 * `selvedge demo`: runs a gateway and a site as separate processes, and shows a live status line. With
 * `--site` it runs only the site, for a running gateway. The data is deleted at the end, unless `--keep`
 * names its folder.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { GatewayError } from '#base/register/errors.ts'
import { systemClock } from '#base/time/clock.ts'
import { csvFiles, readSeriesFolder } from '#cli/data/series-folder.ts'
import type { GivenOptions } from '#cli/terminal/arguments.ts'
import { type Child, endChildren, startChild } from '#cli/terminal/child.ts'
import { portOrAny } from '#cli/terminal/ports.ts'
import { endSignal } from '#cli/terminal/signals.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { demoSettings } from './demo-devices.ts'
import { createFaultLines } from './demo-faults.ts'
import { type DemoOptions, demoOptions } from './demo-options.ts'
import { createDemoPublisher, type SitePorts } from './demo-publisher.ts'
import { replay, simulate } from './demo-site.ts'
import { newEstimates, readSnapshot, type Snapshot, statusLine } from './demo-watch.ts'
import { invitation } from './demo-words.ts'

const host = '127.0.0.1'
const defaultPorts = { http: 9090, mqtt: 1883, orchestrator: 3001, ranking: 3003, search: 8080 } as const
const refreshMs = 1000
const readyWithinMs = 30_000
const endWithinMs = 10_000

export async function demo(given: GivenOptions, terminal: Terminal): Promise<number> {
  const options = demoOptions(given)
  if (options.data !== undefined) csvFiles(options.data)
  const ending = new AbortController()
  void endSignal(systemClock).then(() => ending.abort())
  return options.site === undefined
    ? wholeDemo(options, terminal, ending)
    : siteOnly(options, options.site, terminal, ending.signal)
}

async function wholeDemo(options: DemoOptions, terminal: Terminal, ending: AbortController): Promise<number> {
  const { signal } = ending
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-demo-'))
  const children: Child[] = []
  try {
    const gateway = await startGateway(options, folder, terminal, signal)
    if (gateway === undefined) return exitCodes.ok
    children.push(gateway.child)
    terminal.out(invitation(gateway, options))
    const site = startChild(siteArguments(options, gateway), (line) => terminal.out(`\n  site: ${line}\n`))
    children.unshift(site)
    if (options.durationMs !== undefined) setTimeout(() => ending.abort(), options.durationMs).unref()
    const failure = await watch(gateway, site, terminal, signal)
    if (failure === undefined) terminal.out('\nstopping\n')
    else terminal.err(`\nselvedge demo: ${failure}\n`)
    return failure === undefined ? exitCodes.ok : exitCodes.failure
  } finally {
    await endChildren(children, endWithinMs)
    rmSync(folder, { recursive: true, force: true })
  }
}

interface ReadyLine {
  readonly httpPort: number
  readonly mqttPort: number
  readonly pluginPorts?: { readonly search?: number }
}

interface RunningGateway {
  readonly child: Child
  readonly httpUrl: string
  readonly mqttPort: number
  /** URL of GraphQL and its IDE. */
  readonly searchUrl: string
}

/**
 * Resolves when the gateway is ready; undefined if the signal was aborted first. @throws cli.child with its
 * last lines.
 */
async function startGateway(
  options: DemoOptions,
  folder: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<RunningGateway | undefined> {
  const settingsFile = join(folder, 'selvedge.json')
  const httpPort = options.httpPort ?? (await portOrAny(host, defaultPorts.http, terminal))
  const mqttPort = options.mqttPort ?? (await portOrAny(host, defaultPorts.mqtt, terminal))
  const orchestrator = { port: await portOrAny(host, defaultPorts.orchestrator, terminal) }
  const ranking = { port: await portOrAny(host, defaultPorts.ranking, terminal) }
  const search = { port: await portOrAny(host, defaultPorts.search, terminal) }
  writeFileSync(settingsFile, JSON.stringify({ ...demoSettings(), orchestrator, ranking, search }))
  const data = options.keep === undefined ? join(folder, 'data') : resolve(options.keep)
  const last: string[] = []
  const faultLine = createFaultLines(systemClock.now())
  const ready = Promise.withResolvers<ReadyLine>()
  const child = startChild(
    [
      'run',
      '--config',
      settingsFile,
      '--data',
      data,
      '--http-port',
      String(httpPort),
      '--mqtt-port',
      String(mqttPort),
    ],
    (line) => {
      last.push(line)
      if (last.length > 20) last.shift()
      if (line.includes('"gateway.ready"')) ready.resolve(JSON.parse(line) as ReadyLine)
      else if (/"level":"(warn|error)"/.test(line) && !line.includes('"faults.not-replaced"'))
        terminal.err(`\n${line}\n`)
      const fault = faultLine(line)
      if (fault !== undefined) terminal.out(`\n  gateway: ${fault}\n`)
    },
  )
  const silence = pause(readyWithinMs, 'it was not ready in time', { ref: false })
  const end = Promise.race([child.ended.then((code) => `it ended with ${code}`), silence, aborted(signal)])
  const outcome = await Promise.race([ready.promise, end])
  if (typeof outcome === 'object') {
    const httpUrl = `http://${host}:${outcome.httpPort}`
    const searchPort = outcome.pluginPorts?.search
    const searchUrl = searchPort === undefined ? `${httpUrl}/search` : `http://${host}:${searchPort}`
    return { child, httpUrl, searchUrl, mqttPort: outcome.mqttPort }
  }
  await endChildren([child], endWithinMs)
  if (outcome === undefined) return undefined
  throw new GatewayError('cli.child', `the gateway did not start: ${outcome}\n${last.join('\n')}`)
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

function siteArguments(options: DemoOptions, { httpUrl, mqttPort }: RunningGateway): string[] {
  const series =
    options.data === undefined
      ? []
      : [
          ...['--data', options.data, '--step', String(options.stepMs / 1000)],
          ...['--speed', Number.isFinite(options.speed) ? String(options.speed) : 'max'],
        ]
  return ['demo', '--site', httpUrl, '--mqtt-port', String(mqttPort), ...series]
}

/**
 * Shows the status line until the signal is aborted (undefined) or the gateway or the site fails (reason).
 */
async function watch(
  { child, httpUrl }: RunningGateway,
  site: Child,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<string | undefined> {
  let failure: string | undefined
  void child.ended.then((code) => (failure ??= `the gateway ended with ${code}`))
  void site.ended.then((code) => {
    if (code !== exitCodes.ok) failure ??= `the site ended with ${code}`
  })
  let before: Snapshot | undefined
  while (!signal.aborted && failure === undefined) {
    const now = await readSnapshot(httpUrl, systemClock).catch(() => undefined)
    if (now !== undefined) {
      for (const estimate of newEstimates(now, before)) terminal.out(`\n  gateway: ${estimate}\n`)
      terminal.out(onOneLine(statusLine(now, before), terminal.columns))
      before = now
    }
    await pause(refreshMs, undefined, { signal }).catch(() => undefined)
  }
  return signal.aborted ? undefined : failure
}

/** On a screen, the line replaces the previous one. */
function onOneLine(line: string, columns: number | undefined): string {
  return columns === undefined ? `${line}\n` : `\r\u001b[2K${line.slice(0, columns - 1)}`
}

async function siteOnly(
  options: DemoOptions,
  httpUrl: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { data, speed, stepMs, mqttPort } = options
  const recording =
    data === undefined ? undefined : readSeriesFolder(data, { step: stepMs, end: systemClock.now() })
  const address = { host: new URL(httpUrl).hostname, port: mqttPort ?? defaultPorts.mqtt }
  const publisher = await createDemoPublisher(address, `demo-site-${process.pid}`)
  const print = (line: string): void => terminal.out(`${line}\n`)
  const ports: SitePorts = { publisher, httpUrl, clock: systemClock, print, signal }
  try {
    if (recording === undefined) await simulate(ports)
    else await replay(ports, { ...recording, speed })
  } finally {
    await publisher.close()
  }
  return exitCodes.ok
}
