/**
 * `selvedge status`: shows the state of the gateway. It reads the metrics of a running gateway twice, a
 * second apart, to compute rates. If no gateway responds, it reads the data folder without changing it. The
 * exit code is 0 if the gateway is ready, otherwise 1.
 */

import { setTimeout as pause } from 'node:timers/promises'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import {
  type BrokerConnections,
  connectionRows,
  connectionsOf,
  uplinkConnectionsOf,
} from '#cli/settings/broker-connections.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import { type GivenOptions, table } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { markedVersion } from '#config/load/version-mark.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { type FolderFacts, inspectFolder, isFolderInUse } from '#store/file/inspection.ts'
import { metricValues, sendRequest } from './gateway-client.ts'
import { reachGateway } from './running-gateway.ts'

interface RunningStatus {
  readonly running: true
  readonly url: string
  readonly ready: boolean
  readonly reasons: readonly string[]
  /** Problems to check although the gateway is ready. */
  readonly degraded: readonly string[]
  /** Plugins by name. */
  readonly plugins: Readonly<Record<string, { readonly state: string }>>
  readonly version: string
  readonly clock: ClockFacts
  /** Values by metric name, without `selvedge_`. */
  readonly metrics: Readonly<Record<string, number>>
  readonly observationsPerSecond: number
  /** Connections with other brokers. */
  readonly downward: BrokerConnections
  readonly upward: BrokerConnections
}

interface ClockFacts {
  readonly state: string
  readonly reason?: string
}

interface StoppedStatus {
  readonly running: false
  readonly data: string
  /** The version that last ran there, such as `selvedge/1.2.3`. */
  readonly lastVersion: string | undefined
  /** Undefined if there is no data folder yet. */
  readonly folder: FolderFacts | undefined
}

const rateOverMs = 1000

export async function status(given: GivenOptions, terminal: Terminal): Promise<number> {
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const { settings } = loaded
  // If no gateway runs in the folder of --data, a gateway on the port of the settings is another one.
  const isStopped = given.has('data') && !given.has('url') && isFolderInUse(settings.data) === false
  const found = (isStopped ? undefined : await queryGateway(given, settings)) ?? readFolder(settings)
  if (given.has('json')) terminal.out(`${JSON.stringify(found, undefined, 2)}\n`)
  else terminal.out(found.running ? runningText(found) : stoppedText(found))
  return found.running && found.ready ? exitCodes.ok : exitCodes.failure
}

/**
 * Undefined if the gateway of the settings does not respond. @throws cli.no-answer for that of --url, and as
 * reachGateway
 */
async function queryGateway(given: GivenOptions, settings: Settings): Promise<RunningStatus | undefined> {
  const reached = await reachGateway(given, settings).catch((error: unknown) => {
    // The data folder of a remote gateway is unknown.
    if (given.has('url') || !isGatewayError(error, 'cli.no-answer')) throw error
    return undefined
  })
  if (reached === undefined) return undefined
  const { url, token, health: ready } = reached
  const before = metricValues((await sendRequest(`${url}/metrics`, { token })).text)
  await pause(rateOverMs)
  const metrics = metricValues((await sendRequest(`${url}/metrics`, { token })).text)
  const gained = (metrics.get(observations) ?? 0) - (before.get(observations) ?? 0)
  return {
    running: true,
    url,
    ready: ready.status === 200,
    reasons: member(ready.text, 'reasons', []),
    degraded: member(ready.text, 'degraded', []),
    plugins: pluginsIn((await sendRequest(`${url}/selvedge/v1/plugins`, { token })).text),
    clock: member<ClockFacts>(ready.text, 'clock', { state: 'unknown' }),
    version: member((await sendRequest(`${url}/selvedge/v1/info`, { token })).text, 'version', 'unknown'),
    metrics: Object.fromEntries([...metrics].map(([name, value]) => [name.replace(/^selvedge_/, ''), value])),
    observationsPerSecond: gained / (rateOverMs / 1000),
    upward: uplinkConnectionsOf((await sendRequest(`${url}/selvedge/v1/uplinks`, { token })).text),
    downward: connectionsOf((await sendRequest(`${url}/selvedge/v1/downward`, { token })).text),
  }
}

const observations = 'selvedge_observations_total'

/** The plugins; empty if an older gateway does not report them. */
function pluginsIn(text: string): RunningStatus['plugins'] {
  const plugins = Object.entries((parsedJson(text) ?? {}) as RunningStatus['plugins'])
  return Object.fromEntries(plugins.filter(([, one]) => isObject(one) && typeof one.state === 'string'))
}

function member<T>(text: string, name: string, otherwise: T): T {
  const body = parsedJson(text)
  return ((isObject(body) ? body[name] : undefined) as T | undefined) ?? otherwise
}

function readFolder({ data }: Settings): StoppedStatus {
  try {
    return { running: false, data, lastVersion: markedVersion(data), folder: inspectFolder(data) }
  } catch (error) {
    if (isGatewayError(error)) throw error
    throw new GatewayError('store.failed', `${data} cannot be read: ${(error as Error).message}`, {}, error)
  }
}

function runningText({
  url,
  ready,
  reasons,
  degraded,
  plugins,
  version,
  clock,
  metrics,
  observationsPerSecond,
  downward,
  upward,
}: RunningStatus): string {
  const of = (name: string): string => (metrics[name] ?? 0).toLocaleString('en-US')
  return [
    `Selvedge ${version} at ${url}: ${ready ? 'ready' : `not ready: ${reasons.join('; ')}`}\n`,
    table([
      ...degraded.map((what) => ['Check', what]),
      ['Up', duration(metrics['uptime_seconds'] ?? 0)],
      ['Clock', clockText(clock, metrics['clock_unsettled_rows'] ?? 0)],
      ['Entities', of('entities')],
      ['Streams', `${of('streams_live')} live`],
      [
        'Observations',
        `${of('observations_total')} since start, ${observationsPerSecond.toFixed(1)} per second now`,
      ],
      ['Evicted', `${of('history_evicted_total')} instances of history since start`],
      [
        'Quarantined',
        `${of('quarantine_frames')} frames, ${of('frames_quarantined_total')} quarantined since start; selvedge devices ls`,
      ],
      ['Unclaimed', `${of('unclaimed_topics')} topics that no bridge reads; selvedge devices ls`],
      ['Pending writes', of('queue_works')],
      [
        'Deliveries',
        `${of('deliveries_waiting')} waiting; since start ${of('deliveries_sent_total')} sent, ${of('deliveries_dead_total')} dead letters`,
      ],
      ['Last backup', lastBackup(metrics['backup_age_seconds'] ?? 0)],
      ...connectionRows(upward),
      ...connectionRows(downward),
      ...Object.entries(plugins).map(([name, { state }]) => ['Plugin', `${name}, ${state}`]),
      ['MQTT clients', of('mqtt_clients')],
      ['Memory', bytes(metrics['resident_memory_bytes'] ?? 0)],
      ['Written', `${bytes(metrics['write_bytes_total'] ?? 0)} since start`],
    ]),
  ].join('')
}

function clockText({ state, reason }: ClockFacts, waiting: number): string {
  const why = reason === undefined ? state : `${state}: ${reason}`
  return waiting === 0 ? why : `${why}; ${waiting} log rows wait for the correction of their times`
}

function stoppedText({ data, lastVersion, folder }: StoppedStatus): string {
  if (folder === undefined) return `Selvedge is not running, and ${data} does not exist yet.\n`
  if (folder.tenants.length + folder.unreadable.length === 0)
    return `Selvedge is not running, and ${data} contains no gateway data.\n`
  const head = folder.inUse
    ? 'Selvedge uses the data folder, but does not respond on the HTTP port of the settings (--http-port or --url names another)'
    : 'Selvedge is not running'
  return [
    `${head}. In ${data} (${bytes(folder.bytes)}):\n`,
    ...(lastVersion === undefined ? [] : [table([['Last version', lastVersion]])]),
    ...folder.tenants.map(({ name, format, counts }) => {
      const rows = Object.entries(counts).map(([what, count]) => [
        words[what as keyof typeof counts],
        String(count),
      ])
      return `${name === '' ? '' : `Tenant ${name}:\n`}${table([...rows, ['Data format', String(format)]])}`
    }),
    ...folder.unreadable.map(({ file, reason }) => `${file}: ${reason}\n`),
  ].join('')
}

const words = {
  entities: 'Entities',
  streams: 'Streams',
  subscriptions: 'Subscriptions, with those of plugins',
  deliveries: 'Deliveries waiting',
  deadLetters: 'Dead letters',
  quarantined: 'Quarantined frames',
  gaps: 'Gaps in history',
} as const

/** Without a backup, the gauge reports 100 years. */
function lastBackup(ageSeconds: number): string {
  return ageSeconds < 50 * 365 * 86_400 ? `${duration(ageSeconds)} ago` : 'none'
}

function bytes(count: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB']
  const power = count < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(count) / 3))
  return `${power === 0 ? count : (count / 1000 ** power).toFixed(1)} ${units[power]}`
}

function duration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`
}
