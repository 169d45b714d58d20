/**
 * Concordance: how far a stream moves as its neighbours do. Pure. Two time slots are a concordant pair if
 * both streams rose between them, or both fell (Kendall, 1938). A pair weighs as much as the neighbour
 * changed, so noise counts little. docs/guides/quality.md has the formula.
 */
import { commonSlots, slotLengthsMs, slotsKept, type TimeSlots } from './time-slots.ts'

/** Time slots that two streams must have in common. */
export const commonSlotsMin = 10

const own = new Float32Array(slotsKept)
const other = new Float32Array(slotsKept)

/**
 * Weight of the concordant pairs by weight of all pairs, 0..1, over the shortest slots of which both have
 * enough. Undefined without them, or if the neighbour did not change in any.
 */
export function agreement(stream: TimeSlots, neighbour: TimeSlots): number | undefined {
  const { shortest = slotLengthsMs.length } = stream
  for (let index = Math.max(shortest, neighbour.shortest ?? 0); index < slotLengthsMs.length; index++) {
    const count = commonSlots([stream, neighbour], index, { own, other })
    if (count < commonSlotsMin) continue
    let concordant = 0
    let all = 0
    for (let i = 1; i < count; i++)
      for (let j = 0; j < i; j++) {
        const change = other[i]! - other[j]!
        const weight = Math.abs(change)
        all += weight
        if (change * (own[i]! - own[j]!) > 0) concordant += weight
      }
    if (all > 0) return concordant / all
  }
  return undefined
}

/** The median of the agreements, so that one faulty neighbour does not decide; undefined without any. */
export function concordanceOf(agreements: readonly number[]): number | undefined {
  const sorted = agreements.toSorted((a, b) => a - b)
  const [lower, upper] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return lower === undefined || upper === undefined
    ? undefined
    : Math.round(((lower + upper) / 2) * 10_000) / 10_000
}

/** In tenths. It stays until the concordance is a tenth away, so that few changes are written. */
export function ratedConcordance(before: number | undefined, concordance: number): number {
  const isNear = before !== undefined && Math.abs(before - concordance) < 0.1 - 1e-9
  return isNear ? before : Math.round(concordance * 10) / 10
}
