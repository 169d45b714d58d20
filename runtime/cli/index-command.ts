/**
 * `selvedge index ACTION`: shows the state of the index of a running gateway, or rebuilds it and prints the
 * progress. It uses the same HTTP interface as any client.
 */
import { createProgress } from '#cli/data/transfer.ts'
import { findGateway, type RunningGateway, refusalOf } from '#cli/gateway/running-gateway.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import { actionOf, type GivenOptions, table } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'

/** The reported status; --json shows further members. */
interface StatusView {
  readonly position: number | null
  readonly log: number
  readonly bytes: number
  readonly brokers: readonly {
    readonly address: string
    readonly state: string
    readonly load?: { readonly read: number; readonly total: number | null }
    readonly entities: Readonly<Record<string, number>>
  }[]
}

const path = '/indexing/api'
const actions = ['status', 'rebuild'] as const
const pauseMs = 300

export async function index(given: GivenOptions, terminal: Terminal): Promise<number> {
  const [word = ''] = given.words
  const action = actionOf(word, actions)
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const gateway = await findGateway(given, loaded.settings)
  const status = action === 'rebuild' ? await rebuild(gateway, terminal) : await statusOf(gateway)
  terminal.out(given.has('json') ? `${JSON.stringify(status, undefined, 2)}\n` : words(status))
  return exitCodes.ok
}

async function statusOf(gateway: RunningGateway): Promise<StatusView> {
  const answer = await gateway.request(`${path}/status`)
  if (answer.status !== 200) throw refusalOf(answer, 'reading the state of the index')
  return JSON.parse(answer.text) as StatusView
}

/** Resolves when all entities that existed at the request are indexed. */
async function rebuild(gateway: RunningGateway, terminal: Terminal): Promise<StatusView> {
  const answer = await gateway.request(`${path}/rebuild`, { method: 'POST' })
  if (answer.status !== 202) throw refusalOf(answer, 'rebuilding the index')
  const { log } = JSON.parse(answer.text) as StatusView
  const progress = createProgress(terminal, 'entities')
  for (;;) {
    const status = await statusOf(gateway)
    if (status.position !== null && status.position >= log) return status
    const load = status.brokers.find((broker) => broker.load !== undefined)?.load
    if (load !== undefined) progress.at(load.read, load.total ?? undefined)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

function words({ brokers, bytes, position, log }: StatusView): string {
  const rows = brokers.map(({ address, state, entities }): [string, string] => {
    const counts = Object.entries(entities).map(([kind, count]) => `${kind} ${count}`)
    return [address, `${state}; ${counts.join(', ')}`]
  })
  const behind = position === null ? 'being built' : `${Math.max(0, log - position)} changes behind`
  return `${table(rows)}  ${(bytes / 1e6).toFixed(1)} MB, ${behind}\n`
}
