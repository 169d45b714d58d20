/**
 * `selvedge uplink ACTION [ID]`: shows, tests, pauses, resumes and reconciles the uplinks of a running
 * gateway. It uses the same HTTP interface as any client.
 */
import { GatewayError } from '#base/register/errors.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import { actionOf, type GivenOptions, table } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { nearest } from '#config/schema/nearest.ts'
import { findGateway, type RunningGateway } from './running-gateway.ts'
import { reconcileAll } from './uplink-reconcile.ts'
import { call, counted, historyWaits, type UplinkView, uplinksPath, waits } from './uplink-view.ts'

interface TrialView {
  readonly result: 'works' | 'limited' | 'fails'
  readonly words: string
  readonly tookMs: number
  readonly steps: readonly { readonly step: string; readonly ok: boolean; readonly words: string }[]
}

const actions = ['status', 'test', 'pause', 'resume', 'reconcile'] as const
type Action = (typeof actions)[number]

export async function uplink(given: GivenOptions, terminal: Terminal): Promise<number> {
  const [word = '', id] = given.words
  const action = actionOf(word, actions)
  for (const flag of ['dry-run', 'cancel', 'timeout'])
    if (given.has(flag) && action !== 'reconcile')
      throw new GatewayError('cli.usage', `--${flag} is only for reconcile`)
  if (given.has('dry-run') && given.has('cancel'))
    throw new GatewayError('cli.usage', '--cancel and --dry-run exclude each other')
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const gateway = await findGateway(given, loaded.settings)
  const chosen = await choose(gateway, action, id)
  const show = (value: unknown, text: string): void =>
    terminal.out(given.has('json') ? `${JSON.stringify(value, undefined, 2)}\n` : text)
  if (action === 'test') return testAll(gateway, chosen, show)
  if (action === 'reconcile')
    return reconcileAll(gateway, chosen, { given, show, print: (line) => terminal.err(`${line}\n`) })
  if (action !== 'status')
    for (const each of chosen)
      await call(gateway, 'POST', `${uplinksPath}/${encodeURIComponent(each.id)}/${action}`)
  const now = action === 'status' ? chosen : await choose(gateway, action, id)
  show(now, now.length === 0 ? 'There are no uplinks.\n' : now.map(statusText).join('\n'))
  const offline = now.filter(({ state }) => state === 'offline')
  // The uplink is resumed, even if its centre is still unreachable.
  if (action === 'resume')
    for (const { id, trouble } of offline)
      terminal.err(`${id} is resumed; its centre is still unreachable: ${trouble}\n`)
  return action === 'status' && offline.length > 0 ? exitCodes.failure : exitCodes.ok
}

/** The uplinks that the command applies to. @throws cli.usage if that is ambiguous. */
async function choose(
  gateway: RunningGateway,
  action: Action,
  id: string | undefined,
): Promise<UplinkView[]> {
  const all = (await call(gateway, 'GET', uplinksPath)) as UplinkView[]
  if (id === undefined) {
    if (all.length === 1 || action === 'status' || action === 'test') return all
    throw new GatewayError(
      'cli.usage',
      `name an uplink by ID; existing ones: ${all.map((one) => one.id).join(', ') || 'none'}`,
    )
  }
  const found = all.filter((one) => one.id === id)
  if (found.length > 0) return found
  const meant = nearest(
    id,
    all.map((one) => one.id),
  )
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  throw new GatewayError('cli.usage', `there is no uplink ${id}${hint}`)
}

async function testAll(
  gateway: RunningGateway,
  chosen: readonly UplinkView[],
  show: (value: unknown, text: string) => void,
): Promise<number> {
  const trials = await Promise.all(
    chosen.map(async ({ id, centre }) => {
      const trial = (await call(
        gateway,
        'POST',
        `${uplinksPath}/${encodeURIComponent(id)}/test`,
      )) as TrialView
      return { id, centre, ...trial }
    }),
  )
  const texts = trials.map(({ id, centre, words, result, tookMs, steps }) =>
    [
      `${id} to ${centre}: ${result} (${tookMs} ms): ${words}\n`,
      table(steps.map(({ step, ok, words: text }) => [`${ok ? 'ok' : 'no'} ${step}`, text])),
    ].join(''),
  )
  show(trials, trials.length === 0 ? 'There are no uplinks.\n' : texts.join('\n'))
  return trials.some(({ result }) => result === 'fails') ? exitCodes.failure : exitCodes.ok
}

function span(seconds: number): string {
  if (seconds < 7200) return `${Math.round(seconds / 60)} minutes left`
  if (seconds < 14 * 86_400) return `${Math.round(seconds / 3600)} hours left`
  if (seconds < 3650 * 86_400) return `${Math.round(seconds / 86_400)} days left`
  return 'more than ten years left'
}

function statusText(one: UplinkView): string {
  const number = (count = 0): string => count.toLocaleString('en-US')
  const { waitsFor, historyWaitsFor, trouble, historyTrouble } = one
  return [
    `${one.id} to ${one.centre}: ${one.state}\n`,
    table([
      ...(waitsFor === undefined ? [] : [['Waits', waits[waitsFor] ?? waitsFor]]),
      ...(historyWaitsFor === undefined ? [] : [['History waits', historyWaits]]),
      ...(trouble === undefined ? [] : [['Trouble', `since ${one.troubleSince}: ${trouble}`]]),
      ...(historyTrouble === undefined
        ? []
        : [['Trouble', `with history since ${one.historyTroubleSince}: ${historyTrouble}`]]),
      ['Behind', `${number(Math.round(one.behindSeconds ?? 0))} s`],
      [
        'Waiting',
        `${counted(one.waitingObservations, 'observation')}, ${counted(one.waitingBytes, 'byte')} here`,
      ],
      ...(one.toBeLetGo
        ? [['Over budget', `${counted(one.toBeLetGo, 'observation')} will be dropped and reported as gaps`]]
        : []),
      [
        'Room',
        one.roomSeconds === undefined ? 'no data arrives' : `${span(one.roomSeconds)} at the current rate`,
      ],
      ...(one.evicted ? [['Dropped', `${counted(one.evicted, 'observation')}, reported as gaps`]] : []),
      ['Sent', `${counted(one.sent, 'change')}, ${counted(one.histories, 'history', 'histories')}`],
      ...(one.notKept
        ? [['Not stored', `${counted(one.notKept, 'history', 'histories')}, by the centre`]]
        : []),
      ['Refused', `${number(one.refused)}, see selvedge queue ls`],
      ...(one.collisions ?? []).map(({ origin, entities, entity }) => [
        'Also written',
        `by ${origin}: ${counted(entities, 'entity', 'entities')}, such as ${entity}`,
      ]),
      ['Last success', one.lastSuccess ?? 'never'],
    ]),
  ].join('')
}
