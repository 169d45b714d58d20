/**
 * An ONNX model as a family for a place without a history: its input rows, and its choice by validation.
 * Each source in turn plays the place and is estimated from the others, by the blend of the built-in
 * families and by the model. The model joins only where the error is not larger. Pure; the caller runs the
 * model.
 */
import { type SlotGrid, slotValues } from '#plugins/virtual-sensors/sources/slots.ts'
import type { Correlogram } from '#statistics/kriging.ts'
import { intervalModelOf, rootMeanSquare, spreadOf } from './intervals.ts'
import { predictionOf } from './members.ts'
import {
  type NeighbourhoodScale,
  neighbourhoodScale,
  neighbourhoodSources,
  neighbourhoodWidth,
  writeNeighbourhood,
} from './neighbourhood-features.ts'
import type { NeighbourhoodMember, PlaceNeighbourhood, SourceTrial, Trials } from './neighbourhood-trials.ts'
import { type BlendedModel, blendedValue } from './prediction.ts'
import { featureRow } from './predictors.ts'
import type { AlignedSource } from './table.ts'

const trialsMax = 2000
/** Trained with two or more. */
const sourcesMin = 2
/** Slots after which a value counts as old. */
const ageMax = 3
/** The model alone, or with half of the estimate. */
const shares = [0.5, 1]

/** Undefined for too few sources, or if they never varied. */
export function placeNeighbourhood(
  distances: readonly number[],
  histories: readonly ArrayLike<number>[],
  isSource: (index: number) => boolean = () => true,
): PlaceNeighbourhood | undefined {
  const nearest = [...distances.keys()]
    .filter(isSource)
    .toSorted((a, b) => distances[a]! - distances[b]!)
    .slice(0, neighbourhoodSources)
  if (nearest.length < sourcesMin) return undefined
  const scaled = neighbourhoodScale(nearest.map((i) => histories[i]!))
  return scaled && { nearest, ...scaled }
}

/** The value of a source, and how many slots old it is. */
export type ReadingAt = (source: number) => { readonly value: number; readonly ageSlots: number }

interface PlaceGeometry {
  readonly distances: readonly number[]
  readonly between: readonly (readonly number[])[]
  readonly correlogram: Correlogram
}

/** The input row of a place at a time; undefined if no source has a value. */
export function neighbourhoodRow(
  { nearest, scale, means }: PlaceNeighbourhood,
  { distances, between, correlogram }: PlaceGeometry,
  { at, readingAt }: { readonly at: number; readonly readingAt: ReadingAt },
): Float32Array | undefined {
  const own = {
    distances: nearest.map((i) => distances[i]!),
    between: nearest.map((i) => nearest.map((j) => between[i]![j]!)),
  }
  const sources = nearest.map(readingAt)
  if (sources.every(({ value }) => Number.isNaN(value))) return undefined
  const values = featureRow(sources.length, at, (i, lag) => (lag === 0 ? sources[i]!.value : Number.NaN))
  const kriging = predictionOf(own, { kind: 'kriging', correlogram }, values, at)
  if (!Number.isFinite(kriging)) return undefined
  const target = new Float32Array(neighbourhoodWidth)
  writeNeighbourhood({ ...own, scale, means }, { sources, kriging, at }, { target, offset: 0 })
  return target
}

interface TrialTask {
  readonly model: BlendedModel
  readonly correlogram: Correlogram
  readonly grid: SlotGrid
}

/** Lets each source play the place, in slots over the whole history. */
export function trialsOf(
  aligned: readonly AlignedSource[],
  { model, correlogram, grid }: TrialTask,
): Trials | undefined {
  const { between, members } = model
  const own = aligned.map(({ source }) => slotValues(source, grid))
  const histories = aligned.map(({ values }) => values)
  const step = Math.max(1, Math.ceil((grid.count * aligned.length) / trialsMax))
  const trials: SourceTrial[] = []
  const rows: Float32Array[] = []
  for (const [source, { values }] of aligned.entries()) {
    const distances = between[source]!
    const place = placeNeighbourhood(distances, histories, (i) => i !== source)
    if (place === undefined) continue
    for (let slot = 0; slot < grid.count; slot += step) {
      const truth = values[slot]!
      const at = (grid.first + slot) * grid.slotMs
      const readingAt = (i: number) => ({ value: histories[i]![slot]!, ageSlots: ageAt(own[i]!, slot) })
      const row = neighbourhoodRow(place, { distances, between, correlogram }, { at, readingAt })
      const known = featureRow(aligned.length, at, (i, lag) =>
        i === source ? Number.NaN : (histories[i]![slot - lag] ?? Number.NaN),
      )
      const blended = blendedValue({ distances, between, members }, known, at)
      if (row === undefined || !Number.isFinite(truth) || !Number.isFinite(blended)) continue
      trials.push({ source, truth, blended, spread: spreadOf(known, aligned.length), scale: place.scale })
      rows.push(row)
    }
  }
  if (trials.length === 0) return undefined
  const joined = new Float32Array(rows.length * neighbourhoodWidth)
  for (const [i, row] of rows.entries()) joined.set(row, i * neighbourhoodWidth)
  return { trials, rows: joined }
}

function ageAt(own: Float64Array, slot: number): number {
  let age = 0
  while (age < ageMax && Number.isNaN(own[slot - age] ?? Number.NaN)) age++
  return age
}

/**
 * The share with the least error. The error must not be larger than that of the built-in families, over all
 * sources and at more than half of them.
 * @param estimates of the model, one for each trial, in the scale of the trial
 */
export function chosenMember(
  { trials }: Trials,
  estimates: ArrayLike<number>,
  { name, sha256 }: { readonly name: string; readonly sha256: string },
): NeighbourhoodMember | undefined {
  const residualsOf = (share: number): number[] =>
    trials.map(({ truth, blended, scale }, i) => truth - mixed(blended, estimates[i]!, { share, scale }))
  const without = residualsOf(0)
  const bar = rootMeanSquare(without)
  const sources = [...new Set(trials.map(({ source }) => source))]
  const errorsBySource = (residuals: readonly number[]): number[] =>
    sources.map((source) => rootMeanSquare(residuals.filter((_, i) => trials[i]!.source === source)))
  const bars = errorsBySource(without)
  let best: NeighbourhoodMember | undefined
  for (const share of shares) {
    const residuals = residualsOf(share)
    const error = rootMeanSquare(residuals)
    const better = errorsBySource(residuals).filter((one, i) => one <= bars[i]!).length
    if (!(error <= (best?.error ?? bar)) || 2 * better <= sources.length) continue
    const cases = trials.map(({ truth, spread }, i) => {
      return { predicted: truth - residuals[i]!, spread, residual: residuals[i]! }
    })
    best = { model: name, sha256, share, error, interval: intervalModelOf([cases], [1]) }
  }
  return best
}

/** The estimate with a share of that of the model. */
export const mixed = (
  blended: number,
  estimate: number,
  { share, scale }: { readonly share: number; readonly scale: NeighbourhoodScale },
): number =>
  share === 0 ? blended : (1 - share) * blended + share * (scale.mean + scale.deviation * estimate)
