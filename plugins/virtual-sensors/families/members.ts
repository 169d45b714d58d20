/**
 * The families of virtual sensors as plain data, and the prediction of one of them. Each works with the
 * sources that have a value: weights are renewed without the missing ones, and a linear regression
 * without some of its columns is solved again from the moments of its training. Pure.
 */
import { type BoostedTrees, valueOfTrees } from '#statistics/boosted-trees.ts'
import { type Correlogram, krigingWeightsOf } from '#statistics/kriging.ts'
import type { Moments } from '#statistics/moments.ts'
import { type LinearFit, ridgeOf } from '#statistics/ridge.ts'
import { binOfDay, rootRow } from './predictors.ts'

/** The part of a model that its members share. */
export interface ModelBase {
  /** Distances to the sources, in metres. */
  readonly distances: readonly number[]
  /** Distances between the sources, in metres. */
  readonly between: readonly (readonly number[])[]
  /** Columns of `predictors.ts`, then the target; absent without a history of the target. */
  readonly moments?: Moments
  /** Moments of the square roots of all values; present if no value was negative. */
  readonly rootMoments?: Moments
}

export type Member =
  | { readonly kind: 'inverse-distance'; readonly power: number }
  | { readonly kind: 'nearest'; readonly offsets: readonly number[] }
  | { readonly kind: 'climatology'; readonly profile: readonly number[] }
  | { readonly kind: 'kriging'; readonly correlogram: Correlogram }
  | LinearMember
  | TreesMember

export interface LinearMember {
  readonly kind: 'linear'
  readonly columns: readonly number[]
  readonly penalty: number
  /** Whether the penalty shrinks towards inverse-distance weights, instead of towards the mean. */
  readonly isResidual: boolean
  /** Whether the regression is one of square roots. */
  readonly isRoot: boolean
  /** The solution with all columns, per entry of `columns`. */
  readonly weights: readonly number[]
  readonly intercept: number
}

/** Trees for the target, or for the residual of a linear member. */
export interface TreesMember {
  readonly kind: 'trees'
  readonly trees: BoostedTrees
  readonly linear?: LinearMember
}

/** A place at a source would get an infinite weight. */
const distanceMin = 1
/** The penalty with which missing values are estimated from those that are known. */
const estimationPenalty = 1e-3

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
    case 'trees': {
      const linear = member.linear === undefined ? 0 : linearPrediction(base, member.linear, row)
      return linear + valueOfTrees(member.trees, completeRow(base, row))
    }
  }
}

export const presentSources = ({ distances }: ModelBase, row: Float64Array): number[] =>
  distances.flatMap((_, i) => (Number.isNaN(row[i]!) ? [] : [i]))

/** Weights of the sources that have a value, with the sum 1; zero for the others. */
function inverseDistances(base: ModelBase, row: Float64Array, power: number): Float64Array {
  const weights = Float64Array.from(base.distances, (distance, i) =>
    Number.isNaN(row[i]!) ? 0 : Math.max(distance, distanceMin) ** -power,
  )
  const sum = weights.reduce((a, b) => a + b, 0)
  return weights.map((weight) => weight / sum)
}

function weighted(weights: Float64Array, row: Float64Array): number {
  return weights.reduce((sum, weight, i) => (weight === 0 ? sum : sum + weight * row[i]!), 0)
}

function krigingPrediction(base: ModelBase, correlogram: Correlogram, row: Float64Array): number {
  const present = presentSources(base, row)
  const found = krigingWeightsOf({
    between: present.map((i) => present.map((j) => base.between[i]![j]!)),
    toPlace: present.map((i) => base.distances[i]!),
    correlogram,
  })
  if (found === undefined) return Number.NaN
  return present.reduce((sum, source, i) => sum + found.weights[i]! * row[source]!, 0)
}

function linearPrediction(base: ModelBase, member: LinearMember, row: Float64Array): number {
  const { columns } = member
  const known = columns.filter((column) => !Number.isNaN(row[column]!))
  if (known.length < columns.length) {
    if (presentSources(base, row).length === 0) return Number.NaN
    const { weights, intercept } = linearFit(base, { ...member, columns: known }, row)
    return linearValue(
      base.distances.length,
      { columns: known, isRoot: member.isRoot, weights, intercept },
      row,
    )
  }
  return linearValue(base.distances.length, member, row)
}

type Solution = Pick<LinearMember, 'columns' | 'isRoot' | 'intercept'> & {
  readonly weights: ArrayLike<number>
}

function linearValue(sources: number, { columns, isRoot, weights, intercept }: Solution, row: Float64Array) {
  const used = isRoot ? rootRow(row, sources) : row
  const sum = columns.reduce((total, column, i) => total + weights[i]! * used[column]!, intercept)
  return isRoot ? Math.max(0, sum) ** 2 : sum
}

type LinearTask = Pick<LinearMember, 'columns' | 'penalty' | 'isResidual' | 'isRoot'>

/** Solves a linear member; `row` says which sources have a value. */
export function linearFit(base: ModelBase, task: LinearTask, row: Float64Array): LinearFit {
  return ridgeOf(ridgeTask(base, task, row), task.penalty)
}

/** The ridge regression of a linear member. Residual members shrink towards inverse-distance weights. */
export function ridgeTask(base: ModelBase, task: Omit<LinearTask, 'penalty'>, row: Float64Array) {
  const { columns, isResidual, isRoot } = task
  const moments = (isRoot ? base.rootMoments : base.moments)!
  if (!isResidual) return { moments, columns }
  const weights = inverseDistances(base, row, 2)
  return { moments, columns, prior: columns.map((column) => weights[column] ?? 0) }
}

/** The row with an estimate for each missing value: its regression on the known ones. */
function completeRow(base: ModelBase, row: Float64Array): Float64Array {
  if (!row.some(Number.isNaN) || base.moments === undefined) return row
  const known = [...row.keys()].filter((column) => !Number.isNaN(row[column]!))
  const { rows, means, products } = base.moments
  return row.map((value, missing) => {
    if (!Number.isNaN(value)) return value
    const order = [...known, missing]
    const moments: Moments = {
      rows,
      means: order.map((column) => means[column]!),
      products: order.map((a) => order.map((b) => products[a]![b]!)),
    }
    const { weights, intercept } = ridgeOf({ moments, columns: [...known.keys()] }, estimationPenalty)
    return known.reduce((sum, column, i) => sum + weights[i]! * row[column]!, intercept)
  })
}
