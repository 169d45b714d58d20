/**
 * Measures the backlog of an uplink and the room left, and applies its budget. Estimates come from the
 * statistics kept for each chunk, so they are cheap and approximate.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { UnfoldedBacklog } from '#broker/upkeep/unfolded-backlog.ts'
import type { UplinkOptions } from '#ngsi-ld/subscription/uplink-options.ts'
import {
  type Amount,
  cutPortion,
  joinedPortions,
  type Portion,
  stretchOf,
  type Volume,
  weigh,
  withinBudget,
} from './budget.ts'
import type { SelectedStreams } from './selected-streams.ts'
import type { PendingSpan, UplinkState } from './uplink-state.ts'

export interface BacklogSize extends Amount {
  /** Observations in the backlog that were already decided not to be sent. */
  readonly dropped: number
  /** Seconds until unsent history is dropped if nothing is sent; undefined while nothing arrives. */
  readonly roomSeconds: number | undefined
}

/** Extends or restricts what the budget covers. */
export interface BudgetScope {
  /** Whether the first span is being sent and must not change. */
  readonly isFilling?: boolean
  /** Commit time (ms) up to which changes wait behind the position; absent while they are sent live. */
  readonly behindTo?: number | undefined
}

export interface BacklogMeasurePorts {
  readonly state: UplinkState
  readonly backlog: Pick<UnfoldedBacklog, 'volumes' | 'roomBytes'>
  readonly clock: Clock
  /** The streams of the history that count. */
  readonly selected: SelectedStreams
}

const hourMs = 3_600_000

export type BacklogMeasure = ReturnType<typeof createBacklogMeasure>

export function createBacklogMeasure(
  { state, backlog, clock, selected }: BacklogMeasurePorts,
  options: UplinkOptions,
) {
  const { budgetBytes, budgetObservations, budgetHours } = options
  const thinMs = options.thinSeconds * 1000
  const hasBudget = (budgetBytes ?? budgetObservations ?? budgetHours) !== undefined
  let boundAt = Number.NEGATIVE_INFINITY
  let known: { at: number; waits: BacklogSize } | undefined

  /** Changes after the last span that are not sent. */
  const behind = (to: number): readonly Portion[] =>
    stretchOf(state.ahead, Math.max(state.spans.at(-1)?.to ?? 0, state.position.at), to)

  function selectedOf(volumes: ReturnType<UnfoldedBacklog['volumes']>): readonly Volume[] {
    const isSelected = selected()
    return volumes.filter(({ s }) => isSelected(s))
  }

  function amountOf(
    portions: readonly Portion[],
    volumes: readonly Volume[],
  ): Amount & { readonly dropped: number } {
    const sums = weigh(portions, volumes, thinMs).reduce(
      (sum, { amounts, level }) => ({
        observations: sum.observations + amounts[level].observations,
        bytes: sum.bytes + amounts[level].bytes,
        dropped: sum.dropped + amounts.full.observations - amounts[level].observations,
      }),
      { observations: 0, bytes: 0, dropped: 0 },
    )
    return {
      observations: Math.round(sums.observations),
      bytes: Math.round(sums.bytes),
      dropped: Math.round(sums.dropped),
    }
  }

  function measured(oldest: number | undefined): BacklogSize {
    const now = clock.now()
    const from = oldest ?? now
    const spans = state.spans.map(
      ({ from: begin, to, level = 'full' }): Portion => ({ from: begin, to, level }),
    )
    const waiting = oldest === undefined ? [] : [...spans, ...behind(now + 1)]
    const amount = amountOf(waiting, selectedOf(backlog.volumes(waiting[0]?.from ?? now)))
    const rateMs = limits.uplinkRateMs.value
    const late: readonly Portion[] = [{ from: now - rateMs, to: now + 1, level: 'full' }]
    const came = backlog.volumes(now - rateMs)
    const lately = amountOf(late, selectedOf(came))
    // The history fills with all streams, whatever this uplink selects.
    const allLately = amountOf(late, came)
    const perMs = (count: number): number => count / rateMs
    const rooms = [
      backlog.roomBytes(from) / perMs(allLately.bytes),
      ((budgetBytes ?? Number.POSITIVE_INFINITY) - amount.bytes) / perMs(lately.bytes),
      ((budgetObservations ?? Number.POSITIVE_INFINITY) - amount.observations) / perMs(lately.observations),
      (budgetHours ?? Number.POSITIVE_INFINITY) * hourMs - (now - from),
    ].filter((ms) => Number.isFinite(ms))
    const roomMs =
      allLately.observations === 0 || rooms.length === 0 ? undefined : Math.max(0, Math.min(...rooms))
    return { ...amount, roomSeconds: roomMs === undefined ? undefined : Math.round(roomMs / 1000) }
  }

  /** A commit time may come from a clock that was not set, so age is trusted only as far as the clock is. */
  function oldestAllowed(): number {
    const ageMs = (budgetHours ?? Number.POSITIVE_INFINITY) * hourMs
    const isKnown = (clock.trust?.believedMs() ?? Number.POSITIVE_INFINITY) >= ageMs
    return isKnown ? clock.now() - ageMs : Number.NEGATIVE_INFINITY
  }

  return Object.freeze({
    /** Current size; `oldest` is the commit time of the oldest unsent change. */
    size(oldest: number | undefined): BacklogSize {
      const at = clock.monotonic()
      if (known === undefined || at - known.at > limits.uplinkMeasureMs.value)
        known = { at, waits: measured(oldest) }
      return known.waits
    },
    /** Checks the budget at the next call, because the backlog grew. */
    recheckSoon(): void {
      boundAt = Number.NEGATIVE_INFINITY
    },
    /** Applies the budget at intervals. Returns whether it reduced the backlog further. */
    enforceBudget({ isFilling = false, behindTo }: BudgetScope = {}): boolean {
      const at = clock.monotonic()
      if (!hasBudget || at - boundAt < limits.uplinkBudgetMs.value) return false
      boundAt = at
      const fixed = isFilling ? state.spans.slice(0, 1) : []
      const open = state.spans.slice(fixed.length)
      const waiting = behindTo === undefined ? [] : behind(behindTo)
      const all = [...fixed, ...open, ...waiting]
      const volumes = selectedOf(backlog.volumes(all[0]?.from ?? 0))
      const cut = all.map((span, i) => {
        const portion = portionOf(span, volumes)
        return i < fixed.length
          ? [portion]
          : cutPortion(portion, limits.uplinkBudgetParts.value, limits.uplinkBudgetPartMs.value)
      })
      const parts = cut.flat()
      const budget = {
        bytes: budgetBytes ?? Number.POSITIVE_INFINITY,
        observations: budgetObservations ?? Number.POSITIVE_INFINITY,
        oldest: oldestAllowed(),
      }
      const portions = withinBudget(weigh(parts, volumes, thinMs), budget, fixed.length)
      if (portions.every(({ level }, i) => level === parts[i]!.level)) return false
      // Matched by index, because spans added late may overlap the span being sent.
      let first = 0
      const bounded = cut.map(({ length }, i) => {
        first += length
        return joinedFrom(all[i]!, portions.slice(first - length, first))
      })
      const ends = fixed.length + open.length
      if (behindTo !== undefined) state.ahead = joinedPortions(bounded.slice(ends).flat())
      state.spans = joinedSpans([
        ...fixed,
        ...open.flatMap((span, i) =>
          bounded[fixed.length + i]!.map((one): PendingSpan => ({ ...one, began: span.began ?? span.from })),
        ),
      ])
      known = undefined
      return true
    },
  })
}

/** Joins adjacent spans of one outage and level, except a span being sent. */
function joinedSpans(all: readonly PendingSpan[]): PendingSpan[] {
  const joined: PendingSpan[] = []
  for (const one of all) {
    const last = joined.at(-1)
    const isOne =
      last?.to === one.from && last.level === one.level && last.began === one.began && last.read === undefined
    if (isOne) joined[joined.length - 1] = { ...last, to: one.to }
    else joined.push(one)
  }
  return joined
}

/** Joins the portions of a span; the first was shortened to where data begins. */
function joinedFrom({ from }: PendingSpan, portions: readonly Portion[]): readonly Portion[] {
  const [first, ...others] = joinedPortions(portions)
  return first === undefined ? [] : [{ ...first, from }, ...others]
}

/** Shortens a span to where its data begins. */
function portionOf({ from, to, level = 'full' }: PendingSpan, volumes: readonly Volume[]): Portion {
  const first = volumes.reduce(
    (least, volume) => (volume.to < from ? least : Math.min(least, volume.from)),
    to - 1,
  )
  return { from: Math.max(from, Math.min(first, to - 1)), to, level }
}
