/**
 * How much waits to go up, how much room there is for more, and what the budget of an uplink makes of it. The figures are
 * made from what is kept of chunks beside their values, so they cost little and are about right.
 */
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { Backlog } from '#broker/backlog.ts'
import type { UplinkWishes } from '#ngsi-ld/uplink-wishes.ts'
import { type Amount, cutPortion, joinedPortions, type Portion, weigh, withinBudget } from './budget.ts'
import type { UplinkState, Waiting } from './state.ts'

export interface Waits extends Amount {
  /** Seconds until something that has not gone up is let go, if nothing goes up; undefined where nothing comes in. */
  readonly roomSeconds: number | undefined
}

export interface Measure {
  /** `oldest` is the commit time of the oldest thing that waits. */
  waits(oldest: number | undefined): Waits
  /** Keeps the spans within the budget, now and then. Returns whether these are others now. */
  bound(): boolean
  /** More waits than was known. */
  forget(): void
}

export interface MeasurePorts {
  readonly state: UplinkState
  readonly backlog: Pick<Backlog, 'volumes' | 'roomBytes'>
  readonly clock: Clock
}

const hourMs = 3_600_000

export function createMeasure({ state, backlog, clock }: MeasurePorts, wishes: UplinkWishes): Measure {
  const { budgetBytes, budgetObservations, budgetHours } = wishes
  const thinMs = wishes.thinSeconds * 1000
  const hasBudget = (budgetBytes ?? budgetObservations ?? budgetHours) !== undefined
  let boundAt = Number.NEGATIVE_INFINITY
  let known: { at: number; waits: Waits } | undefined

  function measured(oldest: number | undefined): Waits {
    const now = clock.now()
    const from = oldest ?? now
    const amountOf = (portions: readonly Portion[]): Amount => {
      const first = portions[0]?.from ?? now
      return weigh(portions, backlog.volumes(first), thinMs).reduce<Amount>(
        (sum, { amounts, level }) => ({
          observations: sum.observations + amounts[level].observations,
          bytes: sum.bytes + amounts[level].bytes,
        }),
        { observations: 0, bytes: 0 },
      )
    }
    const spans = state.spans.map(
      ({ from: begin, to, level = 'full' }): Portion => ({ from: begin, to, level }),
    )
    // What came since the last of them, and is not sent.
    const rest = Math.max(spans.at(-1)?.to ?? 0, state.position.at)
    const waiting =
      oldest === undefined ? [] : [...spans, { from: rest, to: now + 1, level: 'full' as const }]
    const amount = amountOf(waiting)
    const rateMs = limits.uplinkRateMs.value
    const lately = amountOf([{ from: now - rateMs, to: now + 1, level: 'full' }])
    const perMs = (count: number): number => count / rateMs
    const rooms = [
      backlog.roomBytes(from) / perMs(lately.bytes),
      ((budgetBytes ?? Number.POSITIVE_INFINITY) - amount.bytes) / perMs(lately.bytes),
      ((budgetObservations ?? Number.POSITIVE_INFINITY) - amount.observations) / perMs(lately.observations),
      (budgetHours ?? Number.POSITIVE_INFINITY) * hourMs - (now - from),
    ].filter((ms) => Number.isFinite(ms))
    const roomMs =
      lately.observations === 0 || rooms.length === 0 ? undefined : Math.max(0, Math.min(...rooms))
    return { ...amount, roomSeconds: roomMs === undefined ? undefined : Math.round(roomMs / 1000) }
  }

  /** Commit times stay those of a clock that was not set: what it made old may have come a minute ago. */
  function oldestAllowed(): number {
    const ageMs = (budgetHours ?? Number.POSITIVE_INFINITY) * hourMs
    const isKnown = (clock.trust?.believedMs() ?? Number.POSITIVE_INFINITY) >= ageMs
    return isKnown ? clock.now() - ageMs : Number.NEGATIVE_INFINITY
  }

  return Object.freeze({
    waits(oldest) {
      const at = clock.monotonic()
      if (known === undefined || at - known.at > limits.uplinkMeasureMs.value)
        known = { at, waits: measured(oldest) }
      return known.waits
    },
    forget() {
      boundAt = Number.NEGATIVE_INFINITY
    },
    bound() {
      const at = clock.monotonic()
      if (!hasBudget || at - boundAt < limits.uplinkBudgetMs.value) return false
      boundAt = at
      const parts = state.spans.flatMap((span) =>
        cutPortion(portionOf(span, backlog), limits.uplinkBudgetParts.value, limits.uplinkBudgetPartMs.value),
      )
      const volumes = backlog.volumes(parts[0]?.from ?? 0)
      const portions = withinBudget(weigh(parts, volumes, thinMs), {
        bytes: budgetBytes ?? Number.POSITIVE_INFINITY,
        observations: budgetObservations ?? Number.POSITIVE_INFINITY,
        oldest: oldestAllowed(),
      })
      if (portions.every(({ level }, i) => level === parts[i]!.level)) return false
      state.spans = state.spans.flatMap((span) => {
        const own = portions.filter(({ from, to }) => from >= span.from && to <= span.to)
        const { began = span.from } = span
        // The first of them was cut from where something is.
        const [first, ...others] = joinedPortions(own)
        return [{ ...first!, from: span.from }, ...others].map((one): Waiting => ({ ...one, began }))
      })
      return true
    },
  } satisfies Measure)
}

/** A span that begins long before anything is there is cut from where something is. */
function portionOf({ from, to, level = 'full' }: Waiting, backlog: Pick<Backlog, 'volumes'>): Portion {
  const first = backlog.volumes(from).reduce((least, volume) => Math.min(least, volume.from), to - 1)
  return { from: Math.max(from, Math.min(first, to - 1)), to, level }
}
