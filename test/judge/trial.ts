/**
 * A trial of an uplink: a gateway and a hub, both real processes with a bad way between them, under devices and clients,
 * through a schedule of cuts and kills that follows from a seed. When the traffic is over and everything went up, both
 * have to hold the same. The seed decides what is done; which instant it meets is up to the machine.
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
import { readGaps, type ToldGap } from './gaps.ts'
import { createPhoenix, type Phoenix } from './phoenix.ts'
import { troubles as allTroubles } from './troubles.ts'
import { compare } from './verdict.ts'
import { createWatcher } from './watcher.ts'
import { keepClockless, keepDevice, keepTanks, pause, type Tally, tankType, vatType } from './writers.ts'

export interface TrialOptions {
  readonly seed: number
  /** Ends when so many observations were acknowledged, */
  readonly observations: number
  /** or after so long. */
  readonly seconds: number
  /** Most observations a second. Device time has 100 a second. */
  readonly rate: number
  /** How long everything may take to go up in the end. */
  readonly patienceSeconds: number
  /** Most observations that may wait for the hub; 0 for any number. Left out, the seed says whether there is a bound, and which. */
  readonly budget?: number | undefined
  /** Whether the hub is restored now and then; left out, mostly where any number may wait, since a restored hub is told all again. */
  readonly restoresHub?: boolean | undefined
  /** Whether the gateway's disk is filled now and then; left out, where a small disk can be mounted. */
  readonly fillsDisk?: boolean
  readonly tell?: (line: string) => void
  /** Ends the trial, and all that it began. */
  readonly signal?: AbortSignal
}

export interface Report {
  readonly complaints: readonly string[]
  readonly tally: Tally
  readonly troubles: Readonly<Record<string, number>>
  readonly entities: number
  readonly instances: number
  /** Instances that only the hub has still, since the gateway let go of them where its disk was full, as it says. */
  readonly forgone: number
  /** Instances that the hub has not, since more waited than the uplink may keep, and of which it was told so. */
  readonly letGo: number
  /** What the hub was told is missing: gaps, by reason, and of how many instances. */
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
  const { tell = () => undefined } = options
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-judge-'))
  const over = new AbortController()
  const limitMs = (options.seconds + options.patienceSeconds) * 1000 + slackMs
  /** What is to end with the trial, whatever became of it; the last first. */
  const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
  if (process.env['JUDGE_KEEP'] !== undefined)
    ends[0] = () => tell(`kept in ${folder} (seed ${options.seed})`)
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
    // Whoever still asks a gateway again and again ends by this.
    over.abort(new TypeError('the trial is over'))
    for (const end of ends.toReversed()) await end()
  }
}

/** For starting, comparing and ending, beside the traffic and the wait until all is up. */
const slackMs = 240_000

async function tried(options: TrialOptions, { folder, ends, signal }: Stage): Promise<Report> {
  const { seed, tell = () => undefined } = options
  const budget = options.budget ?? budgetOf(seed)
  const restoresHub = options.restoresHub ?? (budget === 0 || seed % 4 === 0)
  const disk = diskFor(options, tell)
  if (disk !== undefined) ends.push(() => disk.remove())
  const watcher = await createWatcher()
  ends.push(() => watcher.close())
  const begun = async (...[dataFolder, clockFolder, env]: Parameters<typeof createPhoenix>) => {
    const one = await createPhoenix(dataFolder, clockFolder, env)
    // It may have begun when all was over.
    if (signal.aborted) await one.end()
    ends.push(() => one.end())
    return one
  }
  const [site, hub] = await Promise.all([
    begun(join(disk?.folder ?? folder, 'site'), join(folder, 'site-clock'), {
      // While nothing can be sent it is looked at this often, so that a cut of some seconds is a long one.
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
    { seed, tell },
    { site, hub, proxy, disk, watcher, restoresHub, until: traffic },
  )
  await traffic
  const drainingAt = performance.now()
  tell(`${tally.observations} observations acknowledged in ${seconds(drainingAt - startedAt)} s; draining`)
  const dataFile = join((await site.now()).dataFolder, 'selvedge.db')
  const drained = await waitUntilDrained(dataFile, hubUrl, options.patienceSeconds)
  const drainSeconds = seconds(performance.now() - drainingAt)
  const urls = { site: (await site.now()).httpUrl, hub: hubUrl }
  const keptGaps = troubles['hub restored'] === undefined
  const sameness = await compareInTheEnd(urls, idsOf(), { dataFile, keptGaps })
  const complaints = [
    ...(drained === undefined ? [] : [`not all went up: ${drained}`]),
    ...faultsIn('gateway', await site.now()),
    ...faultsIn('hub', await hub.now()),
    ...watcher.complaints.slice(0, 20),
    ...sameness.complaints,
  ]
  if (complaints.length > 0) {
    for (const [name, one] of Object.entries({ gateway: site, hub }))
      writeFileSync(join(folder, `${name}.log`), (await one.now()).output())
    // What a disk of its own held goes with it.
    if (disk !== undefined && process.env['JUDGE_KEEP'] !== undefined)
      cpSync((await site.now()).dataFolder, join(folder, 'site'), { recursive: true })
  }
  const { entities, instances, forgone, letGo } = sameness
  return {
    ...{ complaints, tally, troubles, entities, instances, forgone, letGo, budget },
    gaps: summed(await readGaps(hubUrl)),
    ...{ notified: watcher.seen(), trafficSeconds: seconds(drainingAt - startedAt), drainSeconds },
  }
}

interface Stage {
  readonly folder: string
  /** Called when the trial is over, the last first. */
  readonly ends: (() => unknown)[]
  readonly signal: AbortSignal
}

/** The disk that is filled; undefined where none is, or can be mounted. */
function diskFor(
  { fillsDisk, observations }: TrialOptions,
  tell: (line: string) => void,
): SmallDisk | undefined {
  const obstacle = fillsDisk === undefined ? smallDiskObstacle() : undefined
  if (obstacle !== undefined) tell(`no disk is filled: that takes ${obstacle}`)
  const isFilled = fillsDisk ?? obstacle === undefined
  // Filling it takes the time and memory of its size.
  return isFilled ? openSmallDisk(128 + Math.ceil(observations / 1000)) : undefined
}

const seconds = (ms: number): number => Math.round(ms / 100) / 10

/** With two seeds of five few observations may wait. By dice of its own: what a seed did before, it does at the same times. */
function budgetOf(seed: number): number {
  const dice = createDice(seed + 5_000_003)
  return dice() < 0.4 ? Math.round(500 + dice() * 5000) : 0
}

function summed(gaps: readonly ToldGap[]): Report['gaps'] {
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

/** On a busy machine the traffic takes longer than it should, until so many were acknowledged. */
const observationsLeast = 600

/** Writers and devices until there were enough observations, or time is over. */
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
    ...{ place: site.now, goesOn, signal },
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
 * Waits until an uplink owes nothing, as its row says, and has compared with a hub that was restored. Returns what it still
 * owes when patience ends.
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

/** What was sent last may still be on its way. */
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

/** Faults of our own that a process told of. */
function faultsIn(who: string, gateway: GatewayProcess): string[] {
  return gateway
    .logLines()
    .filter(({ event }) => event === 'gateway.fault')
    .slice(0, 5)
    .map((line) => `${who}: ${JSON.stringify(line).slice(0, 1500)}`)
}
