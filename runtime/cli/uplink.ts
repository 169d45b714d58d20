/**
 * `selvedge uplink ACTION [ID]`: how the uplinks of a running gateway are, whether their way works, and holding them. It
 * asks over HTTP as any client may.
 */
import { GatewayError } from '#base/errors.ts'
import { nearest } from '#config/nearest.ts'
import { type Given, table } from './arguments.ts'
import { findGateway, type RunningGateway, refusalOf } from './running-gateway.ts'
import { settingsOrTell } from './settings-options.ts'
import { exitCodes, type Terminal } from './terminal.ts'

/** What the gateway tells of an uplink; more of it is shown with --json. */
interface UplinkView {
  readonly id: string
  readonly centre: string
  readonly state: string
  readonly waitsFor?: string
  readonly trouble?: string
  readonly troubleSince?: string
  readonly behindSeconds?: number
  readonly sent?: number
  readonly histories?: number
  readonly refused?: number
  readonly notKept?: number
  readonly waitingObservations?: number
  readonly waitingBytes?: number
  readonly toBeLetGo?: number
  readonly roomSeconds?: number
  readonly evicted?: number
  readonly lastSuccess?: string
  readonly collisions?: readonly {
    readonly origin: string
    readonly entities: number
    readonly entity: string
  }[]
}

interface TrialView {
  readonly result: 'works' | 'limited' | 'fails'
  readonly words: string
  readonly tookMs: number
  readonly steps: readonly { readonly step: string; readonly ok: boolean; readonly words: string }[]
}

const path = '/selvedge/v1/uplinks'
const actions = ['status', 'test', 'pause', 'resume', 'reconcile'] as const
type Action = (typeof actions)[number]

export async function uplink(given: Given, terminal: Terminal): Promise<number> {
  const [word = '', id] = given.words
  const action = actions.find((each) => each === word)
  if (action === undefined) {
    const meant = nearest(word, actions)
    const hint = meant === undefined ? `actions are ${actions.join(', ')}` : `did you mean ${meant}?`
    throw new GatewayError('cli.usage', `${word} is no action; ${hint}`)
  }
  for (const flag of ['dry-run', 'cancel'])
    if (given.has(flag) && action !== 'reconcile')
      throw new GatewayError('cli.usage', `--${flag} goes with reconcile only`)
  if (given.has('dry-run') && given.has('cancel'))
    throw new GatewayError('cli.usage', '--cancel ends what is under way; it takes no --dry-run')
  const loaded = await settingsOrTell(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const gateway = await findGateway(given, loaded.settings)
  const chosen = await choose(gateway, action, id)
  const show = (value: unknown, text: string): void =>
    terminal.out(given.has('json') ? `${JSON.stringify(value, undefined, 2)}\n` : text)
  if (action === 'test') return testAll(gateway, chosen, show)
  if (action === 'reconcile')
    return reconcileAll(gateway, chosen, { show, isDry: given.has('dry-run'), ends: given.has('cancel') })
  if (action !== 'status')
    for (const each of chosen) await call(gateway, 'POST', `${path}/${encodeURIComponent(each.id)}/${action}`)
  const now = action === 'status' ? chosen : await choose(gateway, action, id)
  show(now, now.length === 0 ? 'There are no uplinks.\n' : now.map(statusText).join('\n'))
  return now.some(({ state }) => state === 'offline') ? exitCodes.failure : exitCodes.ok
}

/** The uplinks that are meant. @throws cli.usage when it is not clear which. */
async function choose(
  gateway: RunningGateway,
  action: Action,
  id: string | undefined,
): Promise<UplinkView[]> {
  const all = (await call(gateway, 'GET', path)) as UplinkView[]
  if (id === undefined) {
    if (all.length === 1 || action === 'status' || action === 'test') return all
    throw new GatewayError(
      'cli.usage',
      `which one? There are ${all.map((one) => one.id).join(', ') || 'none'}`,
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

async function call(gateway: RunningGateway, method: string, at: string): Promise<unknown> {
  const answer = await gateway.ask(at, { method })
  if (answer.status !== 200 && answer.status !== 202) throw refusalOf(answer, `${method} ${at}`)
  return JSON.parse(answer.text) as unknown
}

async function testAll(
  gateway: RunningGateway,
  chosen: readonly UplinkView[],
  show: (value: unknown, text: string) => void,
): Promise<number> {
  const trials = await Promise.all(
    chosen.map(async ({ id, centre }) => {
      const trial = (await call(gateway, 'POST', `${path}/${encodeURIComponent(id)}/test`)) as TrialView
      return { id, centre, ...trial }
    }),
  )
  const texts = trials.map(({ id, centre, words, result, tookMs, steps }) =>
    [
      `${id} to ${centre}: ${result} (${tookMs} ms): ${words}\n`,
      table(steps.map(({ step, ok, words: said }) => [`${ok ? 'ok' : 'no'} ${step}`, said])),
    ].join(''),
  )
  show(trials, trials.length === 0 ? 'There are no uplinks.\n' : texts.join('\n'))
  return trials.some(({ result }) => result === 'fails') ? exitCodes.failure : exitCodes.ok
}

/** So many of something. */
const counted = (count = 0, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`

function span(seconds: number): string {
  if (seconds < 7200) return `${Math.round(seconds / 60)} minutes left`
  if (seconds < 14 * 86_400) return `${Math.round(seconds / 3600)} hours left`
  if (seconds < 3650 * 86_400) return `${Math.round(seconds / 86_400)} days left`
  return 'more than ten years left'
}

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

/** Begins, and waits until each is done: the gateway goes on by itself when nobody waits. `ends`: cancels instead. */
async function reconcileAll(
  gateway: RunningGateway,
  chosen: readonly UplinkView[],
  {
    show,
    isDry,
    ends,
  }: {
    readonly show: (value: unknown, text: string) => void
    readonly isDry: boolean
    readonly ends: boolean
  },
): Promise<number> {
  const reports: (ReconcileView & { readonly id: string })[] = []
  for (const { id } of chosen) {
    const at = `${path}/${encodeURIComponent(id)}`
    const query = isDry ? '?dryRun=true' : ''
    let view = await call(gateway, ends ? 'DELETE' : 'POST', `${at}/reconcile${query}`)
    while (!['done', 'cancelled'].includes((view as { reconcile: ReconcileView }).reconcile.phase)) {
      await new Promise((resolve) => setTimeout(resolve, 500))
      view = await call(gateway, 'GET', at)
    }
    reports.push({ id, ...(view as { reconcile: ReconcileView }).reconcile })
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
  return !ends && reports.some(({ phase }) => phase === 'cancelled') ? exitCodes.failure : exitCodes.ok
}

function outcomeOf({ phase, isDry }: ReconcileView): string {
  if (phase === 'cancelled') return `cancelled; ${isDry ? 'nothing was sent' : 'what was sent so far stays'}`
  return isDry ? 'compared, nothing sent' : 'compared, the difference sent'
}

const waits: Readonly<Record<string, string>> = {
  paused: 'until it is resumed',
  clock: 'until the clock of the gateway is set',
  window: 'for its next window',
  'bytes-per-day': 'for the next day (UTC): what may be sent today is sent',
}

function statusText(one: UplinkView): string {
  const number = (count = 0): string => count.toLocaleString('en-US')
  const { waitsFor, trouble } = one
  return [
    `${one.id} to ${one.centre}: ${one.state}\n`,
    table([
      ...(waitsFor === undefined ? [] : [['Waits', waits[waitsFor] ?? waitsFor]]),
      ...(trouble === undefined ? [] : [['Trouble', `since ${one.troubleSince}: ${trouble}`]]),
      ['Behind', `${number(Math.round(one.behindSeconds ?? 0))} s`],
      [
        'Waiting',
        `${counted(one.waitingObservations, 'observation')}, ${counted(one.waitingBytes, 'byte')} here`,
      ],
      ...(one.toBeLetGo
        ? [['Over budget', `${counted(one.toBeLetGo, 'observation')}, to be told as gaps`]]
        : []),
      [
        'Room',
        one.roomSeconds === undefined ? 'nothing comes in' : `${span(one.roomSeconds)} at the current rate`,
      ],
      ...(one.evicted ? [['Let go', `${counted(one.evicted, 'observation')}, told as gaps`]] : []),
      ['Sent', `${counted(one.sent, 'change')}, ${counted(one.histories, 'history', 'histories')}`],
      ...(one.notKept
        ? [['Not kept', `${counted(one.notKept, 'history', 'histories')}, by the centre`]]
        : []),
      ['Refused', `${number(one.refused)}, see selvedge queue ls`],
      ...(one.collisions ?? []).map(({ origin, entities, entity }) => [
        'Also written',
        `by ${origin}: ${counted(entities, 'entity', 'entities')}, such as ${entity}`,
      ]),
      ['Last taken', one.lastSuccess ?? 'never'],
    ]),
  ].join('')
}
