/**
 * A trial of an uplink: a gateway and a hub, both real processes with an unreliable link between them, under
 * load of devices and clients, with a schedule of outages and kills derived from a seed. When the load is
 * over and everything was sent, both must hold the same. The seed decides what is done; the exact instants
 * depend on the machine.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { createDice } from '#test/crash/plan.ts'
import { createFaultProxy } from '#test/kit/fault-proxy.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import type { GatewayProcess } from '#test/kit/process.ts'
import { openSmallDisk, type SmallDisk, smallDiskObstacle } from '#test/kit/small-disk.ts'
import { readForgone } from './forgone.ts'
import { type ReportedGap, readGaps } from './gaps.ts'
import { createPhoenix, type Phoenix } from './phoenix.ts'
import { troubles as allTroubles } from './troubles.ts'
import { compare } from './verdict.ts'
import { createWatcher } from './watcher.ts'
import { keepClockless, keepDevice, keepTanks, pause, type Tally, tankType, vatType } from './writers.ts'

export interface TrialOptions {
  readonly seed: number
  /** Ends after a number of acknowledged observations, */
  readonly observations: number
  /** or after a time. */
  readonly seconds: number
  /** Observations per second at most. Device time has 100 a second. */
  readonly rate: number
  /** The time allowed to send everything in the end. */
  readonly patienceSeconds: number
  /** Pending observations at most; 0 for any number. If absent, the seed decides. */
  readonly budget?: number | undefined
  /**
   * Whether the hub is restored at times; if absent, mostly without a budget, since a restored hub gets
   * everything again.
   */
  readonly restoresHub?: boolean | undefined
  /** Whether the gateway's disk is filled at times; if absent, only where a small disk can be mounted. */
  readonly fillsDisk?: boolean
  readonly log?: (line: string) => void
  /** Ends the trial, and everything it started. */
  readonly signal?: AbortSignal
}

export interface Report {
  readonly complaints: readonly string[]
  readonly tally: Tally
  readonly troubles: Readonly<Record<string, number>>
  readonly entities: number
  readonly instances: number
  /** Instances that only the hub holds, since the gateway reports that it evicted them on a full disk. */
  readonly forgone: number
  /** Instances missing at the hub because they exceeded the budget, as gaps report. */
  readonly letGo: number
  /** Gaps at the hub, by reason, and their number of instances. */
  readonly gaps: Readonly<Record<string, { readonly gaps: number; readonly instances: number }>>
  readonly budget: number
  readonly notified: number
  readonly trafficSeconds: number
  readonly drainSeconds: number
}

const deviceTypes = [
  'http://www.w3.org/ns/sosa/Platform',
  'http://www.w3.org/ns/sosa/Sensor',
  'http://www.w3.org/ns/sosa/ObservableProperty',
  'http://purl.org/iot/ontology/iot-stream#IotStream',
  'http://purl.org/iot/ontology/iot-stream#StreamObservation',
]
const types = [tankType, vatType, ...deviceTypes]
const writers = 4
const tanksEach = 4
const devices = 3

export async function runTrial(options: TrialOptions): Promise<Report> {
  const { log = () => undefined } = options
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-judge-'))
  const over = new AbortController()
  const limitMs = (options.seconds + options.patienceSeconds) * 1000 + slackMs
  /** Cleanup actions that run in any case, last first. */
  const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
  if (process.env['JUDGE_KEEP'] !== undefined) ends[0] = () => log(`kept in ${folder} (seed ${options.seed})`)
  const stop = (reason: string): void => over.abort(new TypeError(reason))
  const timer = setTimeout(() => stop(`the trial did not end within ${limitMs / 1000} s`), limitMs)
  options.signal?.addEventListener('abort', () => stop('the trial was stopped'), { once: true })
  const stopped = new Promise<never>((_, reject) => {
    over.signal.addEventListener('abort', () => reject(over.signal.reason as Error), { once: true })
  })
  try {
    return await Promise.race([tried(options, { folder, ends, signal: over.signal }), stopped])
  } finally {
    clearTimeout(timer)
    // This ends repeated requests to a gateway.
    over.abort(new TypeError('the trial is over'))
    for (const end of ends.toReversed()) await end()
  }
}

/** Time for start, comparison and end, besides the load and the draining. */
const slackMs = 240_000

async function tried(options: TrialOptions, { folder, ends, signal }: Stage): Promise<Report> {
  const { seed, log = () => undefined } = options
  const budget = options.budget ?? budgetOf(seed)
  const restoresHub = options.restoresHub ?? (budget === 0 || seed % 4 === 0)
  const disk = diskFor(options, log)
  if (disk !== undefined) ends.push(() => disk.remove())
  const watcher = await createWatcher()
  ends.push(() => watcher.close())
  const begun = async (...args: Parameters<typeof createPhoenix>) => {
    const one = await createPhoenix(...args)
    // It may have started when everything was over.
    if (signal.aborted) await one.end()
    ends.push(() => one.end())
    return one
  }
  const [site, hub] = await Promise.all([
    begun(join(disk?.folder ?? folder, 'site'), join(folder, 'site-clock'), {
      // While nothing can be sent the check runs this often, so an outage of seconds counts as a long one.
      SELVEDGE_LIMITS: 'uplinkBudgetMs=1000',
    }),
    begun(join(folder, 'hub'), join(folder, 'hub-clock')),
  ])
  const { httpPort: port, httpUrl: hubUrl } = await hub.now()
  const proxy = await createFaultProxy({ target: { host: '127.0.0.1', port } })
  ends.push(() => proxy.close())
  await watcher.subscribe(hub, types)
  await subscribeUplink((await site.now()).httpUrl, `${proxy.url}/ngsi-ld/v1`, budget)
  const startedAt = performance.now()
  const tally: Tally = { observations: 0, operations: {} }
  const traffic = runTraffic(options, { site, signal }, tally)
  const troubles = await allTroubles(
    { seed, log },
    { site, hub, proxy, disk, watcher, restoresHub, until: traffic },
  )
  await traffic
  const drainingAt = performance.now()
  log(`${tally.observations} observations acknowledged in ${seconds(drainingAt - startedAt)} s; draining`)
  const dataFile = join((await site.now()).dataFolder, 'selvedge.db')
  const drained = await waitUntilDrained(dataFile, hubUrl, options.patienceSeconds)
  const drainSeconds = seconds(performance.now() - drainingAt)
  const urls = { site: (await site.now()).httpUrl, hub: hubUrl }
  const keptGaps = troubles['hub restored'] === undefined
  const sameness = await compareInTheEnd(urls, idsOf(), { dataFile, keptGaps })
  const complaints = [
    ...(drained === undefined ? [] : [`not everything was sent: ${drained}`]),
    ...faultsIn('gateway', await site.now()),
    ...faultsIn('hub', await hub.now()),
    ...watcher.complaints.slice(0, 20),
    ...sameness.complaints,
  ]
  if (complaints.length > 0) {
    for (const [name, one] of Object.entries({ gateway: site, hub }))
      writeFileSync(join(folder, `${name}.log`), (await one.now()).output())
    // The content of its own disk is deleted with it.
    if (disk !== undefined && process.env['JUDGE_KEEP'] !== undefined)
      cpSync((await site.now()).dataFolder, join(folder, 'site'), { recursive: true })
  }
  const { entities, instances, forgone, letGo } = sameness
  return {
    complaints,
    tally,
    troubles,
    entities,
    instances,
    forgone,
    letGo,
    budget,
    gaps: summed(await readGaps(hubUrl)),
    notified: watcher.seen(),
    trafficSeconds: seconds(drainingAt - startedAt),
    drainSeconds,
  }
}

interface Stage {
  readonly folder: string
  /** Called when the trial is over, last first. */
  readonly ends: (() => unknown)[]
  readonly signal: AbortSignal
}

/** The disk to fill; undefined if none is filled or none can be mounted. */
function diskFor(
  { fillsDisk, observations }: TrialOptions,
  log: (line: string) => void,
): SmallDisk | undefined {
  const obstacle = fillsDisk === undefined ? smallDiskObstacle() : undefined
  if (obstacle !== undefined) log(`no disk is filled: that requires ${obstacle}`)
  const isFilled = fillsDisk ?? obstacle === undefined
  // Filling it takes time and memory proportional to its size.
  return isFilled ? openSmallDisk(128 + Math.ceil(observations / 1000)) : undefined
}

const seconds = (ms: number): number => Math.round(ms / 100) / 10

/**
 * For two of five seeds few observations may be pending. Uses random numbers of its own, so that earlier
 * seeds keep their schedule.
 */
function budgetOf(seed: number): number {
  const dice = createDice(seed + 5_000_003)
  return dice() < 0.4 ? Math.round(500 + dice() * 5000) : 0
}

function summed(gaps: readonly ReportedGap[]): Report['gaps'] {
  const byReason = Map.groupBy(gaps, ({ reason }) => reason)
  return Object.fromEntries(
    [...byReason].map(([reason, some]) => [
      reason,
      { gaps: some.length, instances: some.reduce((sum, { count }) => sum + count, 0) },
    ]),
  )
}

async function subscribeUplink(url: string, uri: string, budget: number): Promise<void> {
  const wishes = { 'budget-observations': String(budget), 'thin-seconds': '20' }
  const notifierInfo = Object.entries({ mode: 'uplink', ...(budget === 0 ? {} : wishes) }).map(
    ([key, value]) => ({
      key: `selvedge:${key}`,
      value,
    }),
  )
  const reply = await httpClient(url).send('POST', '/ngsi-ld/v1/subscriptions', {
    id: 'urn:judge:uplink',
    type: 'Subscription',
    entities: types.map((type) => ({ type })),
    notification: {
      endpoint: { uri, notifierInfo },
    },
  })
  if (reply.status !== 201) throw new TypeError(`the gateway answered ${reply.status}: ${reply.text}`)
}

const idsOf = (): string[] =>
  Array.from({ length: writers }, (_, w) =>
    Array.from({ length: tanksEach }, (__, i) => `urn:tank:w${w}-${i}`),
  ).flat()

/** On a busy machine the load runs longer, until enough was acknowledged. */
const observationsLeast = 600

/** Runs writers and devices until there are enough observations, or time is over. */
async function runTraffic(
  { seed, observations, seconds: most, rate }: TrialOptions,
  { site, signal }: { readonly site: Phoenix; readonly signal: AbortSignal },
  tally: Tally,
): Promise<void> {
  const startedAt = performance.now()
  let given = 0
  const goesOn = async (made: number): Promise<boolean> => {
    given += made
    const aheadMs = (given / rate) * 1000 - (performance.now() - startedAt)
    if (aheadMs > 0) await pause(Math.min(aheadMs, 1000))
    signal.throwIfAborted()
    const isTime = performance.now() - startedAt < most * 1000
    return tally.observations < (isTime ? observations : Math.min(observations, observationsLeast))
  }
  const portsOf = (i: number) => ({
    place: site.now,
    goesOn,
    signal,
    dice: createDice(seed * 1000 + i),
    otherDice: createDice(seed * 1000 + i + 6_000_003),
  })
  await Promise.all([
    ...Array.from({ length: writers }, (_, i) => keepTanks(`w${i}`, tanksEach, portsOf(i), tally)),
    ...Array.from({ length: devices }, (_, i) => keepDevice(`dev${i}`, portsOf(100 + i), tally)),
    keepClockless('clockless', portsOf(200), tally),
  ])
}

/**
 * Waits until an uplink has nothing pending, by its row, and has reconciled with a restored hub. Returns what
 * is pending at the timeout.
 */
async function waitUntilDrained(
  dataFile: string,
  hubUrl: string,
  patienceSeconds: number,
): Promise<string | undefined> {
  const { restoredAt } = (await httpClient(hubUrl).get('/selvedge/v1/digests?position=true')).json() as {
    restoredAt?: number
  }
  const database = new Database(dataFile, { readonly: true })
  try {
    const state = database.prepare<[], string>('SELECT state FROM uplink').pluck()
    const last = database.prepare<[], number>('SELECT max(n) FROM log').pluck()
    let text = '{}'
    let quiet = 0
    for (let waited = 0; waited < patienceSeconds; waited += 0.25) {
      text = state.get() ?? text
      const {
        spans = [{}],
        refresh,
        position,
        reconcile,
        centreRestoredAt,
      } = JSON.parse(text) as {
        spans?: unknown[]
        refresh?: unknown
        position?: { n: number }
        reconcile?: { phase: string }
        centreRestoredAt?: number
      }
      const hasCompared = centreRestoredAt === restoredAt && (reconcile?.phase ?? 'done') === 'done'
      const isDone = hasCompared && spans.length === 0 && refresh === undefined && position?.n === last.get()
      quiet = isDone ? quiet + 1 : 0
      if (quiet > 4) return undefined
      await pause(250)
    }
    return `${text}, the log ends with ${last.get()}`
  } finally {
    database.close()
  }
}

/** The last requests may still be in progress. */
async function compareInTheEnd(
  urls: { site: string; hub: string },
  ids: readonly string[],
  { dataFile, keptGaps }: { readonly dataFile: string; readonly keptGaps: boolean },
) {
  const forgone = readForgone(dataFile)
  const judged = async () => compare(urls, { types, ids, forgone, keptGaps, gaps: await readGaps(urls.hub) })
  let sameness = await judged()
  for (let i = 0; i < 3 && sameness.complaints.length > 0; i++) {
    await pause(1500)
    sameness = await judged()
  }
  return sameness
}

/** Internal errors that a process reported. */
function faultsIn(who: string, gateway: GatewayProcess): string[] {
  return gateway
    .logLines()
    .filter(({ event }) => event === 'gateway.fault')
    .slice(0, 5)
    .map((line) => `${who}: ${JSON.stringify(line).slice(0, 1500)}`)
}
