/**
 * How far an uplink is, as it survives a restart: what was sent is behind the position, what is still to be filled in is in
 * the spans. It is written through the door, so it is never ahead of what it speaks of, and at most once a second: what is
 * sent again after a crash is known over there.
 */
import type { Position, Span } from '#broker/changes/change-feed.ts'
import type { Collision } from '#uplink/centre/response-shapes.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import { type Level, type Portion, stretchOf } from './budget.ts'
import type { ReconcileTask } from './reconcile-task.ts'

/** What is missing of an attribute instance, or of an entity where none is named; times are ms. */
export interface RefusedGap {
  readonly id?: string
  readonly name?: string
  readonly dataset?: string
  readonly from: number
  readonly to: number
  readonly count: number
  /** Time (ms) and number of the refusal that it began with; left out in states that older versions kept. */
  readonly since?: string
}

/** A span of history that waits. */
export interface PendingSpan {
  from: number
  to: number
  /** What of it goes up; left out, all. */
  level?: Level
  /** Where it began before parts of it had gone up; left out, where it begins. */
  began?: number
  /** The end of the slice that was read last: what is committed later with an earlier time may not be in it. */
  read?: number
}

/** What is missing of whom nobody can name; times are ms. */
export interface UnnamedLoss {
  readonly from: number
  readonly to: number
  readonly count: number
}

/** A span of which all is there that goes up, while what is missing of it is told. It stays what it is until that is done. */
export interface GapReport {
  /** Commit times (ms) at which its cut began, and at which it ends. */
  readonly began: number
  readonly to: number
  /** What is to be told at last, by reason: of those gaps that are behind the position of `gap`. */
  unnamed: { readonly [reason: string]: UnnamedLoss }
  /** Where it is no span, but what was told of all cuts is told again: the last record of these that was. */
  again?: number
}

/** Which deletions may be unsent. */
export interface UnsentDeletions {
  /**
   * Log number behind which deletions were left to the spans, or the history in the spans may bring back what was deleted; left
   * out where there is no such deletion.
   */
  gravesOwed?: number | undefined
  /**
   * Log number up to which entities were created again whose deletion the spans left to the live lane; set when no span is left.
   */
  gravesOwedUpTo?: number | undefined
}

export interface UplinkState extends UnsentDeletions {
  /** All of the log up to here went up, but for what `refresh` and `spans` still owe. */
  position: Position
  /** Entities behind `rid` that became something else after a commit time are still to be sent as they are. */
  refresh: { since: number; graves: number; rid: number } | undefined
  /** Commit times (from <= ms < to) whose history is still to be sent, oldest first. */
  spans: PendingSpan[]
  /** What is decided of what waits behind the position, while nothing can be sent, in order; it becomes spans then. */
  ahead: readonly Portion[]
  /** The last of these that is done, until what is missing of it is told, too. */
  telling?: GapReport | undefined
  /** What was refused, is not kept any more, and is still to be told, by what it is of. */
  readonly forgone: { [of: string]: RefusedGap }
  /** The last record of what the history let go that was told, or need not be. */
  gap: number
  /** What began to go before a time (ms) was all told, of whatever cut. */
  gapsBefore?: number
  /** The other broker may lack gaps that are behind: it was brought back to an older copy, or more is selected than was. */
  mayLackGaps?: boolean
  /** How many the gaps beyond their ceiling told of, by reason, when they were told last. */
  summed?: { readonly [reason: string]: number }
  /** By a person, who alone ends it. */
  isPaused: boolean
  /** Bytes that were sent on a UTC day, and of these by each lane. */
  day: { date: string; bytes: number } & { [lane in Lane]?: number }
  /** When (ms) something was taken last, and when it was not and why. */
  last: { success?: number; failure?: number; reason?: string }
  /** When this state came out of a backup, ms: what went up between may be unknown here. `selvedge restore` sets it. */
  restored?: number
  /** A comparison with the other broker: the one under way, else the last one. */
  reconcile?: ReconcileTask
  /** The number of the last change over there, as it was told last. */
  centreAt?: number
  /** When an older copy was brought back over there, by its clock; left out where it does not say. */
  centreRestoredAt?: number | undefined
  /** Below which scope all stands over there, as it was told last; left out, where it stands here. */
  scope?: string
  /** Address and tenant over there to which all of this belongs, and a print of what was selected. */
  centre?: string
  selected?: string
  /** Who else writes there what this gateway writes, as it was told last. */
  collisions?: readonly Collision[]
  /** What the other broker calls itself in Via; left out where it does not say. */
  pseudonym?: string | undefined
  /** Changes, past values and requests that were taken, and what was not. */
  readonly counts: { sent: number; past: number; refused: number; skipped: number; evicted: number }
}

export function newState(position: Position, refresh: UplinkState['refresh']): UplinkState {
  return {
    position,
    refresh,
    spans: [],
    ahead: [],
    forgone: {},
    gap: 0,
    isPaused: false,
    day: { date: '', bytes: 0 },
    last: {},
    counts: { sent: 0, past: 0, refused: 0, skipped: 0, evicted: 0 },
  }
}

/**
 * The state of an uplink that goes to `centre` with a selection of this print, at the end `here` of the log. Another centre or
 * tenant holds nothing of it, so all begins anew; another selection leaves what waits and adds all else. A state that does not
 * say where it went is taken for one that went there.
 */
export function adaptState(
  state: UplinkState | undefined,
  { centre, selected }: { readonly centre: string; readonly selected: string },
  here: Position,
): UplinkState {
  const isOtherCentre = state?.centre !== undefined && state.centre !== centre
  if (state === undefined || isOtherCentre) {
    const fresh = newState(here, { since: 0, graves: here.n, rid: 0 })
    fresh.spans.push({ from: 0, to: here.at + 1 })
    if (state !== undefined) Object.assign(fresh, { isPaused: state.isPaused, day: state.day })
    return Object.assign(fresh, { centre, selected })
  }
  if (state.selected !== undefined && state.selected !== selected) {
    const graves = Math.min(state.position.n, state.refresh?.graves ?? state.position.n)
    state.refresh = { since: 0, graves, rid: 0 }
    state.spans = fillHoles(state.spans, Math.max(state.position.at, here.at) + 1)
    // Gaps of what was not selected were passed over.
    state.mayLackGaps = true
    state.gapsBefore = here.at + 1
  }
  return Object.assign(state, { centre, selected })
}

/** Spans, and between them all else up to a time. */
function fillHoles(spans: readonly PendingSpan[], end: number): PendingSpan[] {
  let at = 0
  const whole = spans.flatMap((span) => {
    const hole = { from: at, to: span.from }
    at = span.to
    return hole.from < hole.to ? [hole, span] : [span]
  })
  return at < end ? [...whole, { from: at, to: end }] : whole
}

/**
 * What was committed from a time on, and before another, is to be filled in: as it was decided while it waited. What bears a time
 * that was read already may have been committed behind that; gaps of the time before are told with what was read.
 */
export function addPending(state: UplinkState, from: number, to: number): void {
  const began = Math.max(outageStart(state, from), state.spans.at(-1)?.to ?? 0)
  appendSpans(state, stretchOf(state.ahead, Math.max(from, unreadEnd(state, from) ?? from), to), began)
  state.ahead = []
}

/** All of it is to be filled in, without a hole to what is owed already; of that, what is earlier may have gone up. */
export function addPendingInFull(state: UplinkState, { from, to }: Span): void {
  appendSpans(state, stretchOf([], unreadEnd(state, from) ?? from, to))
}

/** Where no span is left, the backfill lane has sent all deletions but those of entities that were created again, which the live lane sends. */
export function endUnsentDeletions(state: UplinkState, here: number): void {
  if (state.spans.length > 0 || state.gravesOwed === undefined) return
  state.gravesOwedUpTo = here
  clearUnsentDeletions(state)
}

/** No deletion is unsent once the live lane has passed what the spans left to it. */
export function clearUnsentDeletions(state: UnsentDeletions & Pick<UplinkState, 'position'>): void {
  if (state.gravesOwedUpTo === undefined || state.position.n < state.gravesOwedUpTo) return
  delete state.gravesOwed
  delete state.gravesOwedUpTo
}

/** The end of the last span, where that is still to be read from a time on. */
function unreadEnd({ spans }: UplinkState, from: number): number | undefined {
  const last = spans.at(-1)
  return last !== undefined && Math.max(last.from, last.read ?? 0) <= from ? last.to : undefined
}

function appendSpans(
  state: UplinkState,
  [first, ...others]: readonly Portion[],
  began = first?.from ?? 0,
): void {
  const { spans, position } = state
  state.gravesOwed = Math.min(position.n, state.gravesOwed ?? position.n)
  delete state.gravesOwedUpTo
  if (first === undefined) return
  const last = spans.at(-1)
  // One that is on its way stays as it is: a budget leaves it alone.
  const isOne = last?.to === first.from && last.read === undefined && (last.level ?? 'full') === first.level
  if (isOne) last.to = first.to
  else spans.push({ ...first, began })
  spans.push(...others.map((one): PendingSpan => ({ ...one, began })))
}

/** When a cut begins (ms): what has gone up is no part of it while its gaps are told, since they would be told twice. */
const outageStart = ({ telling }: UplinkState, since: number): number =>
  telling === undefined || telling.again !== undefined ? since : Math.max(since, telling.to)

/** Has all gaps that are on record told again to whoever may lack them, when no others are being told. */
export function resendGaps(state: UplinkState, now: number): void {
  if (state.mayLackGaps !== true || state.telling !== undefined) return
  delete state.mayLackGaps
  state.telling = { began: now, to: now, unnamed: {}, again: 0 }
}

/** The commit time (ms) since which something is owed, where all behind the position is committed since then. */
export const pendingSince = ({ telling, spans: [first] }: UplinkState, behind: number): number =>
  Math.min(behind, telling?.began ?? behind, first?.began ?? first?.from ?? behind)

/** A state from its row. */
export const readState = (text: string): UplinkState => {
  const state = JSON.parse(text) as Partial<UplinkState> & Pick<UplinkState, 'position'>
  const fresh = newState(state.position, undefined)
  return { ...fresh, ...state, counts: { ...fresh.counts, ...state.counts } }
}
