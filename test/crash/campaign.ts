/**
 * A campaign: one data folder, one site, many lives of the gateway. Each life begins with a judgement of what the
 * one before left, then traffic, then SIGKILL. What a killed judgement did not see is judged in the next life; at
 * the end everything is judged once more from the first message on.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { type GatewayProcess, startGatewayProcess, startSelvedge } from '#test/kit/process.ts'
import { unnoticedFacts } from './canary.ts'
import { judgeSite } from './hearing.ts'
import type { Complaint } from './judge.ts'
import { acknowledgedCount } from './ledger.ts'
import { type Kill, labelOf } from './plan.ts'
import { createSite, type Pace, type Site } from './site.ts'

/** What came of the kills of one kind. */
export interface Row {
  readonly label: string
  kills: number
  /** Lives that ended otherwise, because the place was never passed. */
  missed: number
  /** Messages and writes acknowledged in these lives. */
  acknowledged: number
  /** Complaints about what the restart showed, by fault. */
  readonly faults: Map<Complaint['fault'], number>
}

export interface Report {
  readonly rows: readonly Row[]
  readonly complaints: readonly string[]
  readonly kills: number
  readonly acknowledged: number
  readonly judgements: number
  /** Made-up facts that the judge did not complain about; there must be none. */
  readonly unnoticed: readonly string[]
  /** Longest start after a kill, ms. */
  readonly slowestStartMs: number
}

export interface CampaignOptions {
  readonly name: string
  readonly dice: () => number
  /** How long a named place may stay unpassed, ms. */
  readonly patienceMs?: number
  readonly slowness?: number
  /** Environment of every gateway that is judged. */
  readonly env?: Readonly<Record<string, string>>
  readonly tell?: (line: string) => void
}

const checkpointText = 150_000

export async function runCampaign(kills: readonly Kill[], options: CampaignOptions): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-crash-'))
  const site = await createSite(options.name)
  const campaign = createCampaign(folder, site, options)
  try {
    await campaign.found()
    for (const kill of kills) await campaign.strike(kill)
    return await campaign.finish()
  } finally {
    await site.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function createCampaign(folder: string, site: Site, options: CampaignOptions) {
  const { dice, patienceMs = 100_000, slowness = 1, env: given = {}, tell = () => undefined } = options
  const rows = new Map<string, Row>()
  const complaints = new Set<string>()
  const startMs: number[] = []
  let lastRow = rowOf('founding')
  let judgements = 0
  let killCount = 0

  function rowOf(label: string): Row {
    const row = rows.get(label) ?? { label, kills: 0, missed: 0, acknowledged: 0, faults: new Map() }
    rows.set(label, row)
    return row
  }

  function note(found: readonly Complaint[]): void {
    for (const { fault, text } of found) {
      const line = `${fault} after ${lastRow.label}: ${text}`
      if (complaints.has(`${fault} ${text}`)) continue
      complaints.add(`${fault} ${text}`)
      lastRow.faults.set(fault, (lastRow.faults.get(fault) ?? 0) + 1)
      tell(line)
    }
  }

  async function start(failpoints?: string): Promise<GatewayProcess> {
    const before = performance.now()
    const env = failpoints === undefined ? given : { ...given, SELVEDGE_FAILPOINTS: failpoints }
    const gateway = await startGatewayProcess({ dataFolder: folder, env })
    startMs.push(performance.now() - before)
    return gateway
  }

  /** Undefined when its pending work reached the failpoint before the gateway was ready. */
  async function startUntilKilled(kill: Kill): Promise<GatewayProcess | undefined> {
    if (kill.kind !== 'failpoint') return start()
    return start(`${kill.name}=kill(${kill.passage})`).catch((error: Error) => {
      if (!error.message.startsWith('it ended with SIGKILL')) throw error
      return undefined
    })
  }

  /** Judges everything that is new; false when the gateway died meanwhile. */
  async function judge(gateway: GatewayProcess): Promise<boolean> {
    try {
      note(await judgeSite(site, gateway, { isAll: false }))
      judgements++
      return true
    } catch (error) {
      if (!(await within(2000, gateway.exited))) throw error
      return false
    }
  }

  /** A gateway that dies while it starts. */
  async function strikeStart(kill: Kill, row: Row): Promise<void> {
    const failpoint = kill.kind === 'start' ? `${kill.name}=kill(${kill.passage})` : ''
    const env = { SELVEDGE_DATA: folder, SELVEDGE_HTTP_PORT: '0', SELVEDGE_MQTT_PORT: '0' }
    const running = startSelvedge(['run'], {
      env: failpoint === '' ? env : { ...env, SELVEDGE_FAILPOINTS: failpoint },
    })
    const after = kill.kind === 'start-instant' ? kill.afterMs : patienceMs
    const isDead = await within(after, running.exited)
    if (!isDead && kill.kind === 'start') row.missed++
    await running.kill()
  }

  /** A gateway that is judged, then used, and dies of it. */
  async function strikeTraffic(kill: Kill, row: Row): Promise<void> {
    const isDelivery = kill.kind === 'failpoint' && kill.name.startsWith('delivery')
    await site.subscriber.set(isDelivery || dice() < 0.6)
    const gateway = await startUntilKilled(kill)
    if (gateway === undefined) return
    if (await judge(gateway)) {
      const isPages = kill.kind === 'failpoint' && kill.name === 'writer:after-checkpoint'
      const pace: Pace = { slowness, textLength: isPages ? checkpointText : 20 }
      const stop = Promise.withResolvers<void>()
      const traffic = site.live(gateway, pace, stop.promise)
      traffic.catch(() => stop.resolve())
      const turned = isDelivery ? undefined : turnSubscriber(stop.promise)
      const after = kill.kind === 'instant' ? kill.afterMs : patienceMs
      const isDead = await within(after, gateway.exited)
      if (!isDead && kill.kind === 'failpoint') row.missed++
      await gateway.kill()
      stop.resolve()
      await Promise.all([traffic, turned])
    }
    await gateway.stop()
  }

  /** The subscriber comes or goes in the middle of some lives. */
  async function turnSubscriber(stop: Promise<void>): Promise<void> {
    if (dice() < 0.4 && !(await within(300 + dice() * 500, stop)))
      await site.subscriber.set(!site.subscriber.isUp)
  }

  return {
    /** The first start makes the data folder; killed between the steps of that. */
    async found(): Promise<void> {
      const row = rowOf('migrate:between-steps')
      await strikeStart({ kind: 'start', name: 'migrate:between-steps', passage: 1 }, row)
      row.kills++
      killCount++
      const gateway = await start()
      await site.settle(gateway)
      await gateway.kill()
      await gateway.stop()
    },
    async strike(kill: Kill): Promise<void> {
      const row = rowOf(labelOf(kill))
      const before = acknowledgedCount(site.ledger)
      const begunAt = performance.now()
      const isStart = kill.kind === 'start' || kill.kind === 'start-instant'
      await (isStart ? strikeStart(kill, row) : strikeTraffic(kill, row))
      row.kills++
      killCount++
      lastRow = row
      const acknowledged = acknowledgedCount(site.ledger) - before
      row.acknowledged += acknowledged
      note(integrityOf(join(folder, 'selvedge.db')))
      const seconds = ((performance.now() - begunAt) / 1000).toFixed(1)
      tell(`${killCount} ${row.label}: ${acknowledged} acknowledged, ${seconds} s`)
    },
    async finish(): Promise<Report> {
      await site.subscriber.set(true)
      const gateway = await start()
      note(await judgeSite(site, gateway, { isAll: true }))
      judgements++
      note(site.ledger.oddities.map((text) => ({ fault: 'invented', text })))
      const unnoticed = await unnoticedFacts(site, gateway)
      await gateway.stop()
      note(integrityOf(join(folder, 'selvedge.db')))
      rows.delete('founding')
      return {
        rows: [...rows.values()],
        complaints: [...complaints],
        kills: killCount,
        acknowledged: acknowledgedCount(site.ledger),
        judgements,
        unnoticed,
        slowestStartMs: Math.max(...startMs),
      }
    },
  }
}

/** True when the promise settles in time. */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  const settled = promise.then(() => true)
  return Promise.race([settled, late]).finally(() => clearTimeout(timer))
}

/** Looks at the file as the kill left it, without taking anything out of its WAL. */
function integrityOf(file: string): Complaint[] {
  const database = new BetterSqlite3(file, { readonly: true })
  try {
    const rows = database.pragma('integrity_check') as { integrity_check: string }[]
    const words = rows.map((row) => row.integrity_check).filter((word) => word !== 'ok')
    return words.map((text) => ({ fault: 'damaged', text }))
  } finally {
    database.close()
  }
}
