/**
 * The families of virtual sensors as plain data, and the prediction of one of them. Each works with the
 * sources that have a value: weights are renewed without the missing ones, and a linear regression
 * without some of its columns is solved again from the moments of its training. Pure.
 */
import { type Correlogram, krigingWeightsOf } from '#statistics/kriging.ts'
import type { Moments } from '#statistics/moments.ts'
import { ridgeOf } from '#statistics/ridge.ts'
import { binOfDay } from './predictors.ts'

/** The part of a model that its members share. */
export interface ModelBase {
  /** Distances to the sources, in metres. */
  readonly distances: readonly number[]
  /** Distances between the sources, in metres. */
  readonly between: readonly (readonly number[])[]
  /** Columns of `predictors.ts`, then the target; absent without a history of the target. */
  readonly moments?: Moments
}

export type Member =
  | { readonly kind: 'inverse-distance'; readonly power: number }
  | { readonly kind: 'nearest'; readonly offsets: readonly number[] }
  | { readonly kind: 'climatology'; readonly profile: readonly number[] }
  | { readonly kind: 'kriging'; readonly correlogram: Correlogram }
  | LinearMember

export interface LinearMember {
  readonly kind: 'linear'
  readonly columns: readonly number[]
  readonly penalty: number
  /** Whether the penalty shrinks towards inverse-distance weights, instead of towards the mean. */
  readonly isResidual: boolean
  /** The solution with all columns, per entry of `columns`. */
  readonly weights: readonly number[]
  readonly intercept: number
}

/** A place at a source would get an infinite weight. */
const distanceMin = 1

/** NaN where the member cannot predict. */
export function predictionOf(base: ModelBase, member: Member, row: Float64Array, at: number): number {
  switch (member.kind) {
    case 'inverse-distance':
      return weighted(inverseDistances(base, row, member.power), row)
    case 'nearest': {
      const nearest = presentSources(base, row).sort((a, b) => base.distances[a]! - base.distances[b]!)[0]
      return nearest === undefined ? Number.NaN : row[nearest]! + member.offsets[nearest]!
    }
    case 'climatology':
      return member.profile[binOfDay(at, member.profile.length)]!
    case 'kriging':
      return krigingPrediction(base, member.correlogram, row)
    case 'linear':
      return linearPrediction(base, member, row)
  }
}

export const presentSources = ({ distances }: ModelBase, row: Float64Array): number[] =>
  distances.flatMap((_, i) => (Number.isNaN(row[i]!) ? [] : [i]))

/** Weights of the sources that have a value, with the sum 1; zero for the others. */
export function inverseDistances(base: ModelBase, row: Float64Array, power: number): Float64Array {
  const weights = Float64Array.from(base.distances, (distance, i) =>
    Number.isNaN(row[i]!) ? 0 : Math.max(distance, distanceMin) ** -power,
  )
  const sum = weights.reduce((a, b) => a + b, 0)
  return weights.map((weight) => weight / sum)
}

function weighted(weights: Float64Array, row: Float64Array): number {
  return weights.reduce((sum, weight, i) => (weight === 0 ? sum : sum + weight * row[i]!), 0)
}

/** The kriging weights of the sources with a value. */
export function krigingOf(base: ModelBase, correlogram: Correlogram, row: Float64Array) {
  const present = presentSources(base, row)
  const found = krigingWeightsOf({
    between: present.map((i) => present.map((j) => base.between[i]![j]!)),
    toPlace: present.map((i) => base.distances[i]!),
    correlogram,
  })
  return found === undefined ? undefined : { ...found, present }
}

function krigingPrediction(base: ModelBase, correlogram: Correlogram, row: Float64Array): number {
  const found = krigingOf(base, correlogram, row)
  if (found === undefined) return Number.NaN
  return found.present.reduce((sum, source, i) => sum + found.weights[i]! * row[source]!, 0)
}

function linearPrediction(base: ModelBase, member: LinearMember, row: Float64Array): number {
  const { columns } = member
  const present = columns.filter((column) => !Number.isNaN(row[column]!))
  if (present.length === columns.length) {
    return columns.reduce((sum, column, i) => sum + member.weights[i]! * row[column]!, member.intercept)
  }
  if (base.moments === undefined || presentSources(base, row).length === 0) return Number.NaN
  const fit = linearFit(base, { ...member, columns: present }, row)
  return present.reduce((sum, column, i) => sum + fit.weights[i]! * row[column]!, fit.intercept)
}

type LinearTask = Pick<LinearMember, 'columns' | 'penalty' | 'isResidual'>

/** Solves a linear member; `row` says which sources have a value. */
export function linearFit(base: ModelBase, { columns, penalty, isResidual }: LinearTask, row: Float64Array) {
  const moments = base.moments!
  if (!isResidual) return ridgeOf({ moments, columns }, penalty)
  return ridgeOf({ moments, columns, prior: priorOf(base, columns, row) }, penalty)
}

/** The inverse-distance weights, per column. */
export function priorOf(base: ModelBase, columns: readonly number[], row: Float64Array): number[] {
  const weights = inverseDistances(base, row, 2)
  return columns.map((column) => weights[column] ?? 0)
}
