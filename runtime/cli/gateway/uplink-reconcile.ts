/**
 * `selvedge uplink reconcile`: begins a comparison, says what it does and what it waits for, and reports. The gateway goes on by
 * itself when nobody waits.
 */
import { GatewayError } from '#base/register/errors.ts'
import { type Given, table } from '#cli/terminal/arguments.ts'
import { exitCodes } from '#cli/terminal/terminal.ts'
import type { RunningGateway } from './running-gateway.ts'
import { call, counted, historyWaits, type UplinkView, uplinksPath, waits } from './uplink-view.ts'

interface ReconcileView {
  readonly phase: string
  readonly isDry: boolean
  readonly compared: number
  readonly missing: number
  readonly different: number
  readonly newer?: number
  readonly tooLarge?: number
  readonly surplus: number
  readonly unknown: number
  readonly days: number
  readonly observations: number
}

export async function reconcileAll(
  gateway: RunningGateway,
  chosen: readonly UplinkView[],
  {
    given,
    show,
    tell,
  }: {
    readonly given: Given
    readonly show: (value: unknown, text: string) => void
    readonly tell: (line: string) => void
  },
): Promise<number> {
  const [isDry, ends] = [given.has('dry-run'), given.has('cancel')]
  const until = performance.now() + secondsOf(given.text('timeout')) * 1000
  const reports: (ReconcileView & { readonly id: string })[] = []
  for (const { id } of chosen) {
    const at = `${uplinksPath}/${encodeURIComponent(id)}`
    const query = isDry ? '?dryRun=true' : ''
    let view = (await call(gateway, ends ? 'DELETE' : 'POST', `${at}/reconcile${query}`)) as Reconciling
    let toldAt = performance.now()
    let told = ''
    while (!isThrough(view) && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 500))
      view = (await call(gateway, 'GET', at)) as Reconciling
      const now = performance.now()
      const [what, far] = progressOf(view)
      if (isThrough(view) || (what === told ? now - toldAt < farEveryMs : now - toldAt < soonMs)) continue
      tell(`${id}: ${what}${far}`)
      ;[told, toldAt] = [what, now]
    }
    reports.push({ id, ...view.reconcile })
  }
  const texts = reports.map((one) =>
    [
      `${one.id}: ${outcomeOf(one)}\n`,
      table([
        ['Compared', `${one.compared} entities`],
        ['Missing there', `${one.missing}`],
        ['Different there', `${one.different}`],
        ['Newer there', `${counted(one.newer, 'value')}; they stay`],
        ['Too large to tell', `${one.tooLarge ?? 0}`],
        ['Deleted here', `${one.surplus}`],
        ['Not known here', `${one.unknown}; they stay`],
        ['History', `${one.days} days of attributes, ${one.observations} observations sent`],
      ]),
    ].join(''),
  )
  show(reports, texts.join('\n'))
  if (ends || given.text('timeout') === '0') return exitCodes.ok
  return reports.every(({ phase }) => phase === 'done') ? exitCodes.ok : exitCodes.failure
}

type Reconciling = UplinkView & { readonly reconcile: ReconcileView }

const isThrough = ({ reconcile: { phase } }: Reconciling): boolean => ['done', 'cancelled'].includes(phase)

/** What is told first when it lasts so long, and how far it is now and then, ms. */
const [soonMs, farEveryMs] = [1000, 10_000]

/** What it does, or waits for; and how far it is. */
function progressOf(view: Reconciling): [what: string, far: string] {
  const { state, waitsFor, historyWaitsFor, trouble, historyTrouble, reconcile } = view
  if (waitsFor !== undefined) return [`waits ${waits[waitsFor] ?? `for ${waitsFor}`}`, '']
  if (trouble !== undefined) return [`waits for the centre, which cannot be reached: ${trouble}`, '']
  // It goes by the way of history.
  if (historyWaitsFor !== undefined) return [`waits ${historyWaits}`, '']
  if (historyTrouble !== undefined)
    return [`waits for the centre, which fails at histories: ${historyTrouble}`, '']
  if (state === 'catching-up') return ['waits until what was not told yet has gone up', '']
  return [`compares (${reconcile.phase})`, `, ${counted(reconcile.compared, 'entity', 'entities')} so far`]
}

/** @throws cli.usage */
function secondsOf(text: string | undefined): number {
  const seconds = Number(text ?? Number.POSITIVE_INFINITY)
  if (text === '' || Number.isNaN(seconds) || seconds < 0)
    throw new GatewayError('cli.usage', `--timeout ${text} is no number of seconds`)
  return seconds
}

function outcomeOf({ phase, isDry }: ReconcileView): string {
  if (phase !== 'done' && phase !== 'cancelled')
    return 'not through yet; the gateway goes on with it (selvedge uplink reconcile --cancel ends it)'
  if (phase === 'cancelled') return `cancelled; ${isDry ? 'nothing was sent' : 'what was sent so far stays'}`
  return isDry ? 'compared, nothing sent' : 'compared, the difference sent'
}
