/**
 * Trains a virtual sensor for a place without a history. Every source in turn plays the place and is
 * estimated from the others. These estimates decide how ordinary kriging, the simple averages and the
 * usual course of the day are weighed. Pure.
 */

import { gridOf, type SlotGrid } from '#plugins/virtual-sensors/sources/slots.ts'
import { correlationOf } from '#statistics/correlation.ts'
import { correlogramOf } from '#statistics/kriging.ts'
import { simplexWeights } from '#statistics/simplex-weights.ts'
import { intervalModelOf, rootMeanSquare, spreadOf, type ValidationCase } from './intervals.ts'
import { type Member, predictionOf } from './members.ts'
import { binOfDay, dayBinsOf, featureRow } from './predictors.ts'
import { type AlignedSource, alignedSource, geometryOf } from './table.ts'
import type { TrainingInput, TrainingOutcome } from './virtual-sensor-model.ts'

const slotsMax = 20_000
/** Slots that are estimated for each source. */
const estimatedMax = 1000
const spreading = 0.1
const weightMin = 0.03

interface Candidate {
  readonly family: string
  readonly member: Member
}

export function trainWithoutHistory({ sources, slotMs, range }: TrainingInput): TrainingOutcome {
  const longest = sources.reduce((a, b) => (b.times.length > a.times.length ? b : a))
  const grid = gridOf(longest, slotMs, slotsMax)
  if (grid === undefined) return { failure: 'not-enough-data' }
  const aligned = sources.map((source) => alignedSource(source, grid))
  const geometry = geometryOf(sources)
  const pairs = aligned.flatMap((a, i) =>
    aligned.slice(0, i).flatMap((b, j) => {
      const { correlation, pairs: common } = correlationOf(a.values, b.values)
      return common < 2 ? [] : [{ distance: geometry.between[i]![j]!, correlation }]
    }),
  )
  const candidates: readonly Candidate[] = [
    { family: 'kriging', member: { kind: 'kriging', correlogram: correlogramOf(pairs) } },
    { family: 'nearest', member: { kind: 'nearest', offsets: sources.map(() => 0) } },
    { family: 'mean', member: { kind: 'inverse-distance', power: 0 } },
    { family: 'inverse distance', member: { kind: 'inverse-distance', power: 1 } },
    { family: 'inverse distance squared', member: { kind: 'inverse-distance', power: 2 } },
    { family: 'climatology', member: { kind: 'climatology', profile: sharedProfile(aligned, grid) } },
  ]
  const cases = estimatesOf(candidates, aligned, { grid, between: geometry.between })
  const all = sources.length < 3 ? [1] : [...simplexWeights(errorsOf(cases, candidates.length), spreading)]
  const kept = candidates.flatMap((one, i) =>
    (all[i] ?? 0) < weightMin ? [] : [{ ...one, weight: all[i]! }],
  )
  const sum = kept.reduce((total, { weight }) => total + weight, 0)
  const members = kept.map((one) => ({ ...one, weight: one.weight / sum }))
  const validation = cases.map(({ truth, estimates, spread }): ValidationCase => {
    const predicted = candidates.reduce((total, _, i) => {
      const weight = (all[i] ?? 0) < weightMin ? 0 : all[i]! / sum
      return weight === 0 ? total : total + weight * estimates[i]!
    }, 0)
    return { predicted, spread, residual: truth - predicted }
  })
  const model = {
    ...geometry,
    family: members.length === 1 ? members[0]!.family : 'blend',
    sources: sources.map(({ id }) => id),
    holdMs: aligned.map(({ holdMs }) => holdMs),
    slotMs,
    members,
    error: rootMeanSquare(validation.map(({ residual }) => residual)),
    interval: intervalModelOf(validation, [1]),
    rows: grid.count,
    range: range ?? {},
  }
  return { model }
}

interface Estimate {
  readonly truth: number
  /** By candidate. */
  readonly estimates: readonly number[]
  readonly spread: number
}

interface Places {
  readonly grid: SlotGrid
  readonly between: readonly (readonly number[])[]
}

/** Estimates each source from the others by every candidate. */
function estimatesOf(
  candidates: readonly Candidate[],
  aligned: readonly AlignedSource[],
  { grid, between }: Places,
): readonly Estimate[] {
  const step = Math.max(1, Math.floor(grid.count / estimatedMax))
  return aligned.flatMap(({ values }, left) => {
    const base = { distances: between[left]!, between }
    const found: Estimate[] = []
    for (let slot = 0; slot < grid.count; slot += step) {
      const at = (grid.first + slot) * grid.slotMs
      const row = featureRow(aligned.length, at, (i, lag) =>
        i === left ? Number.NaN : (aligned[i]!.values[slot - lag] ?? Number.NaN),
      )
      const truth = values[slot]!
      const estimates = candidates.map(({ member }) => predictionOf(base, member, row, at))
      if ([truth, ...estimates].every(Number.isFinite)) {
        found.push({ truth, estimates, spread: spreadOf(row, aligned.length) })
      }
    }
    return found
  })
}

const errorsOf = (cases: readonly Estimate[], count: number): readonly Float64Array[] =>
  Array.from({ length: count }, (_, i) => Float64Array.from(cases, (one) => one.estimates[i]! - one.truth))

/** The mean of all sources per time of day. */
function sharedProfile(aligned: readonly AlignedSource[], grid: SlotGrid): number[] {
  const bins = dayBinsOf(grid.slotMs)
  const sums = new Float64Array(bins)
  const counts = new Float64Array(bins)
  for (const { values } of aligned) {
    values.forEach((value, slot) => {
      if (Number.isNaN(value)) return
      const bin = binOfDay((grid.first + slot) * grid.slotMs, bins)
      sums[bin]! += value
      counts[bin]!++
    })
  }
  const all = sums.reduce((a, b) => a + b, 0) / counts.reduce((a, b) => a + b, 0)
  return [...sums].map((sum, bin) => (counts[bin] === 0 ? all : sum / counts[bin]!))
}
