/**
 * How much of what an uplink selects waits to go up, how much room there is for more, and what its budget makes of it. The figures are
 * made from what is kept of chunks beside their values, so they cost little and are about right.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Backlog } from '#broker/upkeep/unfolded-backlog.ts'
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
  /** Observations of what waits that will not go up, as far as that is decided. */
  readonly dropped: number
  /** Seconds until something that has not gone up is let go, if nothing goes up; undefined where nothing comes in. */
  readonly roomSeconds: number | undefined
}

export interface BacklogMeasure {
  /** `oldest` is the commit time of the oldest thing that waits. */
  size(oldest: number | undefined): BacklogSize
  /** Keeps what waits within the budget, now and then. Returns whether more of it is let go now. */
  enforceBudget(what?: BudgetScope): boolean
  /** More waits than was known. */
  recheckSoon(): void
}

/** What is bounded beside the spans, and what of these is not. */
export interface BudgetScope {
  /** The first span is on its way, and stays as it is. */
  readonly isFilling?: boolean
  /** Commit time up to which something waits behind the position, ms; left out, it goes up by itself. */
  readonly behindTo?: number | undefined
}

export interface BacklogMeasurePorts {
  readonly state: UplinkState
  readonly backlog: Pick<Backlog, 'volumes' | 'roomBytes'>
  readonly clock: Clock
  /** What of the history counts. */
  readonly selected: SelectedStreams
}

const hourMs = 3_600_000

export function createBacklogMeasure(
  { state, backlog, clock, selected }: BacklogMeasurePorts,
  options: UplinkOptions,
): BacklogMeasure {
  const { budgetBytes, budgetObservations, budgetHours } = options
  const thinMs = options.thinSeconds * 1000
  const hasBudget = (budgetBytes ?? budgetObservations ?? budgetHours) !== undefined
  let boundAt = Number.NEGATIVE_INFINITY
  let known: { at: number; waits: BacklogSize } | undefined

  /** What came since the last of the spans, and is not sent. */
  const behind = (to: number): readonly Portion[] =>
    stretchOf(state.ahead, Math.max(state.spans.at(-1)?.to ?? 0, state.position.at), to)

  function selectedOf(volumes: ReturnType<Backlog['volumes']>): readonly Volume[] {
    const isSelected = selected()
    return volumes.filter(({ s }) => isSelected(s))
  }

  function amountOf(
    portions: readonly Portion[],
    volumes: readonly Volume[],
  ): Amount & { readonly dropped: number } {
    return weigh(portions, volumes, thinMs).reduce(
      (sum, { amounts, level }) => ({
        observations: sum.observations + amounts[level].observations,
        bytes: sum.bytes + amounts[level].bytes,
        dropped: sum.dropped + amounts.full.observations - amounts[level].observations,
      }),
      { observations: 0, bytes: 0, dropped: 0 },
    )
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
    // The history fills with all there is, whoever selects of it.
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

  /** Commit times stay those of a clock that was not set: what it made old may have come a minute ago. */
  function oldestAllowed(): number {
    const ageMs = (budgetHours ?? Number.POSITIVE_INFINITY) * hourMs
    const isKnown = (clock.trust?.believedMs() ?? Number.POSITIVE_INFINITY) >= ageMs
    return isKnown ? clock.now() - ageMs : Number.NEGATIVE_INFINITY
  }

  return Object.freeze({
    size(oldest) {
      const at = clock.monotonic()
      if (known === undefined || at - known.at > limits.uplinkMeasureMs.value)
        known = { at, waits: measured(oldest) }
      return known.waits
    },
    recheckSoon() {
      boundAt = Number.NEGATIVE_INFINITY
    },
    enforceBudget({ isFilling = false, behindTo }: BudgetScope = {}) {
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
      // By their places: what was owed late lies over what is on its way.
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
  } satisfies BacklogMeasure)
}

/** Neighbours of one cut and level as one, but for one that is on its way. */
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

/** The portions of a span as few; the first of them was cut from where something is. */
function joinedFrom({ from }: PendingSpan, portions: readonly Portion[]): readonly Portion[] {
  const [first, ...others] = joinedPortions(portions)
  return first === undefined ? [] : [{ ...first, from }, ...others]
}

/** A span that begins long before anything is there is cut from where something is. */
function portionOf({ from, to, level = 'full' }: PendingSpan, volumes: readonly Volume[]): Portion {
  const first = volumes.reduce(
    (least, volume) => (volume.to < from ? least : Math.min(least, volume.from)),
    to - 1,
  )
  return { from: Math.max(from, Math.min(first, to - 1)), to, level }
}
