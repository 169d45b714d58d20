/**
 * `selvedge uplink reconcile`: starts a comparison, prints its progress, and reports the result. The gateway
 * continues the comparison if the command ends.
 */
import { GatewayError } from '#base/register/errors.ts'
import { type GivenOptions, table } from '#cli/terminal/arguments.ts'
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
    print,
  }: {
    readonly given: GivenOptions
    readonly show: (value: unknown, text: string) => void
    readonly print: (line: string) => void
  },
): Promise<number> {
  const [isDry, isCancel] = [given.has('dry-run'), given.has('cancel')]
  const until = performance.now() + secondsOf(given.text('timeout')) * 1000
  const reports: (ReconcileView & { readonly id: string })[] = []
  for (const { id } of chosen) {
    const at = `${uplinksPath}/${encodeURIComponent(id)}`
    const query = isDry ? '?dryRun=true' : ''
    let view = (await call(gateway, isCancel ? 'DELETE' : 'POST', `${at}/reconcile${query}`)) as Reconciling
    let printedAt = performance.now()
    let printed = ''
    while (!isFinished(view) && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 500))
      view = (await call(gateway, 'GET', at)) as Reconciling
      const now = performance.now()
      const [what, progress] = progressOf(view)
      if (
        isFinished(view) ||
        (what === printed ? now - printedAt < progressEveryMs : now - printedAt < settledMs)
      )
        continue
      print(`${id}: ${what}${progress}`)
      ;[printed, printedAt] = [what, now]
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
        ['Newer there', `${counted(one.newer, 'value')}; kept`],
        ['Too large to send', `${one.tooLarge ?? 0}`],
        ['Deleted here', `${one.surplus}`],
        ['Not known here', `${one.unknown}; kept`],
        ['History', `${one.days} days of attributes, ${one.observations} observations sent`],
      ]),
    ].join(''),
  )
  show(reports, texts.join('\n'))
  if (isCancel || given.text('timeout') === '0') return exitCodes.ok
  return reports.every(({ phase }) => phase === 'done') ? exitCodes.ok : exitCodes.failure
}

type Reconciling = UplinkView & { readonly reconcile: ReconcileView }

const isFinished = ({ reconcile: { phase } }: Reconciling): boolean => ['done', 'cancelled'].includes(phase)

/** A new state is printed once it lasts this long, and its progress at this interval, ms. */
const [settledMs, progressEveryMs] = [1000, 10_000]

/** The current activity or reason for waiting, and its progress. */
function progressOf(view: Reconciling): [what: string, progress: string] {
  const { state, waitsFor, historyWaitsFor, trouble, historyTrouble, reconcile } = view
  if (waitsFor !== undefined) return [`waits ${waits[waitsFor] ?? `for ${waitsFor}`}`, '']
  if (trouble !== undefined) return [`waits for the centre, which is unreachable: ${trouble}`, '']
  // The comparison uses the history lane.
  if (historyWaitsFor !== undefined) return [`waits ${historyWaits}`, '']
  if (historyTrouble !== undefined)
    return [`waits for the centre, which fails to store histories: ${historyTrouble}`, '']
  if (state === 'catching-up') return ['waits until the backlog has been sent', '']
  return [`compares (${reconcile.phase})`, `, ${counted(reconcile.compared, 'entity', 'entities')} so far`]
}

/** @throws cli.usage */
function secondsOf(text: string | undefined): number {
  const seconds = Number(text ?? Number.POSITIVE_INFINITY)
  if (text === '' || Number.isNaN(seconds) || seconds < 0)
    throw new GatewayError('cli.usage', `--timeout expects seconds, got ${text}`)
  return seconds
}

function outcomeOf({ phase, isDry }: ReconcileView): string {
  if (phase !== 'done' && phase !== 'cancelled')
    return 'not finished; the gateway continues it (selvedge uplink reconcile --cancel stops it)'
  if (phase === 'cancelled')
    return `cancelled; ${isDry ? 'nothing was sent' : 'changes sent so far are kept'}`
  return isDry ? 'compared, nothing sent' : 'compared, differences sent'
}
