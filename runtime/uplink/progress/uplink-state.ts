/**
 * Progress of an uplink, stored across restarts: everything up to the position was sent, except for the
 * pending spans. It is written through the door, so it is never ahead of the data it refers to, at most once
 * a second. The centre recognizes what is sent again after a crash.
 */
import type { CommitSpan, LogPosition } from '#broker/changes/change-feed.ts'
import type { CollisionAtCentre } from '#uplink/centre/response-shapes.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import { type Level, type Portion, stretchOf } from './budget.ts'
import type { ReconcileTask } from './reconcile-task.ts'

/** Missing values of an attribute instance, or of an entity if no attribute is named; times are ms. */
export interface RefusedGap {
  readonly id?: string
  readonly name?: string
  readonly dataset?: string
  readonly from: number
  readonly to: number
  readonly count: number
  /** Time (ms) and number of the first refusal; absent in states that older versions stored. */
  readonly since?: string
}

/** A span of history that is to be sent. */
export interface PendingSpan {
  from: number
  to: number
  /** The level of detail to send; absent means full. */
  level?: Level
  /** Original start of the span; absent while no part of it was sent. */
  began?: number
  /** End of the slice read last; a later commit with an earlier time may be missing from it. */
  read?: number
}

/** Losses of entities that cannot be named; times are ms. */
export interface UnnamedLoss {
  readonly from: number
  readonly to: number
  readonly count: number
}

/** A span that was sent and whose gaps are being reported. It does not change until that is done. */
export interface GapReport {
  /** Commit times (ms) of the start of its outage and of its end. */
  readonly began: number
  readonly to: number
  /** Sums reported last, by reason: of the gaps behind the position `gap`. */
  unnamed: { readonly [reason: string]: UnnamedLoss }
  /** Set when the gaps of all outages are reported again: the last record that was. */
  again?: number
}

/** Deletions that may be unsent. */
export interface UnsentDeletions {
  /**
   * Log number after which deletions were left to the spans, or after which history in the spans may
   * resurrect a deleted entity; absent if there is no such deletion.
   */
  deletionsUnsentAfter?: number | undefined
  /**
   * Log number up to which an entity may have been re-created whose deletion the spans left to the live lane;
   * set when no span is left.
   */
  deletionsUnsentUpTo?: number | undefined
}

export interface UplinkState extends UnsentDeletions {
  /** Everything in the log up to here was sent, except for `refresh` and `spans`. */
  position: LogPosition
  /** Entities after `rid` that changed after a commit time are still to be sent in their current state. */
  refresh: { since: number; deletionsAfter: number; rid: number } | undefined
  /** Commit times (from <= ms < to) whose history is still to be sent, oldest first. */
  spans: PendingSpan[]
  /**
   * Budget levels decided for changes behind the position while nothing can be sent, in order; they become
   * spans later.
   */
  ahead: readonly Portion[]
  /** The last finished span, until its gaps are reported. */
  telling?: GapReport | undefined
  /** Gaps for dropped refusals that are still to be reported, by their subject. */
  readonly forgone: { [of: string]: RefusedGap }
  /** The last eviction record that was reported, or did not need to be. */
  gap: number
  /** All evictions that began before this time (ms) were reported, for any outage. */
  gapsBefore?: number
  /**
   * Whether the centre may lack gaps reported before: it was restored from an older copy, or more is selected
   * now.
   */
  mayLackGaps?: boolean
  /** Counts in the sums beyond the gap limit when they were last reported, by reason. */
  summed?: { readonly [reason: string]: number }
  /** Paused by an operator, and resumed only by one. */
  isPaused: boolean
  /** Bytes sent on a UTC day, in total and by lane. */
  day: { date: string; bytes: number } & { [lane in Lane]?: number }
  /** When (ms) a request last succeeded, and when and why one failed. */
  last: { success?: number; failure?: number; reason?: string }
  /**
   * When this state was restored from a backup (ms): later sends are unknown here. `selvedge restore` sets
   * it.
   */
  restored?: number
  /** The current or last reconciliation. */
  reconcile?: ReconcileTask
  /** The log position of the centre, as last reported. */
  centreAt?: number
  /** When the centre was restored from an older copy, by its clock; absent if it does not report this. */
  centreRestoredAt?: number | undefined
  /** The scope prefix of entities at the centre, as last sent; absent without one. */
  scope?: string
  /** Address and tenant of the centre this state belongs to, and a hash of the selection. */
  centre?: string
  selected?: string
  /** Other gateways that write the same entities at the centre, as last reported. */
  collisions?: readonly CollisionAtCentre[]
  /** The centre's name in Via; absent if it reports none. */
  pseudonym?: string | undefined
  /** Counts of accepted changes and histories, and of those that were not. */
  readonly counts: { sent: number; past: number; refused: number; skipped: number; evicted: number }
}

export function newState(position: LogPosition, refresh: UplinkState['refresh']): UplinkState {
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
 * The state of an uplink to `centre` with a selection of this hash, at the end `here` of the log. For another
 * centre or tenant everything starts over. For another selection, pending spans stay and everything else is
 * added. A state without a centre is assumed to belong to this one.
 */
export function adaptState(
  state: UplinkState | undefined,
  { centre, selected }: { readonly centre: string; readonly selected: string },
  here: LogPosition,
): UplinkState {
  const isOtherCentre = state?.centre !== undefined && state.centre !== centre
  if (state === undefined || isOtherCentre) {
    const fresh = newState(here, { since: 0, deletionsAfter: here.n, rid: 0 })
    fresh.spans.push({ from: 0, to: here.at + 1 })
    if (state !== undefined) Object.assign(fresh, { isPaused: state.isPaused, day: state.day })
    return Object.assign(fresh, { centre, selected })
  }
  if (state.selected !== undefined && state.selected !== selected) {
    const deletionsAfter = Math.min(state.position.n, state.refresh?.deletionsAfter ?? state.position.n)
    state.refresh = { since: 0, deletionsAfter, rid: 0 }
    state.spans = fillHoles(state.spans, Math.max(state.position.at, here.at) + 1)
    // Gaps of streams that were not selected before were skipped.
    state.mayLackGaps = true
    state.gapsBefore = here.at + 1
  }
  return Object.assign(state, { centre, selected })
}

/** The spans, with the time between them and up to `end` filled in. */
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
 * Adds commits from <= ms < to to the spans, at the levels decided while they waited. A commit may bear a
 * time that was read already, so the range starts at the unread end; gaps before it belong to what was read.
 */
export function addPending(state: UplinkState, from: number, to: number): void {
  const began = Math.max(outageStart(state, from), state.spans.at(-1)?.to ?? 0)
  appendSpans(state, stretchOf(state.ahead, Math.max(from, unreadEnd(state, from) ?? from), to), began)
  state.ahead = []
}

/** Adds a span in full, without a hole after the last span; the earlier part may have been sent already. */
export function addPendingInFull(state: UplinkState, { from, to }: CommitSpan): void {
  appendSpans(state, stretchOf([], unreadEnd(state, from) ?? from, to))
}

/**
 * Once no span is left, the backfill lane has sent all deletions except those of re-created entities, which
 * the live lane sends.
 */
export function endUnsentDeletions(state: UplinkState, here: number): void {
  if (state.spans.length > 0 || state.deletionsUnsentAfter === undefined) return
  state.deletionsUnsentUpTo = here
  clearUnsentDeletions(state)
}

/** Clears the mark once the live lane has passed the deletions that the spans left to it. */
export function clearUnsentDeletions(state: UnsentDeletions & Pick<UplinkState, 'position'>): void {
  if (state.deletionsUnsentUpTo === undefined || state.position.n < state.deletionsUnsentUpTo) return
  delete state.deletionsUnsentAfter
  delete state.deletionsUnsentUpTo
}

/** End of the last span, if that span is still unread from a time on. */
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
  state.deletionsUnsentAfter = Math.min(position.n, state.deletionsUnsentAfter ?? position.n)
  delete state.deletionsUnsentUpTo
  if (first === undefined) return
  const last = spans.at(-1)
  // A span being sent does not change: the budget leaves it alone.
  const isOne = last?.to === first.from && last.read === undefined && (last.level ?? 'full') === first.level
  if (isOne) last.to = first.to
  else spans.push({ ...first, began })
  spans.push(...others.map((one): PendingSpan => ({ ...one, began })))
}

/**
 * Start of an outage (ms). While the gaps of a sent span are being reported, the outage begins after it, or
 * they would be reported twice.
 */
const outageStart = ({ telling }: UplinkState, since: number): number =>
  telling === undefined || telling.again !== undefined ? since : Math.max(since, telling.to)

/** Starts reporting all recorded gaps again if the centre may lack them and no report is in progress. */
export function resendGaps(state: UplinkState, now: number): void {
  if (state.mayLackGaps !== true || state.telling !== undefined) return
  delete state.mayLackGaps
  state.telling = { began: now, to: now, unnamed: {}, again: 0 }
}

/**
 * Commit time (ms) since which records are needed, if everything behind the position was committed since
 * `behind`.
 */
export const pendingSince = ({ telling, spans: [first] }: UplinkState, behind: number): number =>
  Math.min(behind, telling?.began ?? behind, first?.began ?? first?.from ?? behind)

/** Parses a stored state. */
export const readState = (text: string): UplinkState => {
  const state = JSON.parse(text) as Partial<UplinkState> & Pick<UplinkState, 'position'>
  const fresh = newState(state.position, undefined)
  return { ...fresh, ...state, counts: { ...fresh.counts, ...state.counts } }
}
