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
    const { weights, intercept } = reducedFit(base, member, { known, row })
    return linearValue(
      base.distances.length,
      { columns: known, isRoot: member.isRoot, weights, intercept },
      row,
    )
  }
  return linearValue(base.distances.length, member, row)
}

interface Reduced<Fit> {
  readonly moments: Moments
  readonly known: readonly number[]
  readonly fit: Fit
}

/** The last reduced fit of each member: mostly the same sources are missing in the next row, too. */
const reducedFits = new WeakMap<LinearMember, Reduced<LinearFit>>()

/** The fit of a member without the columns that are missing. */
function reducedFit(
  base: ModelBase,
  member: LinearMember,
  { known, row }: { readonly known: readonly number[]; readonly row: Float64Array },
): LinearFit {
  const last = reducedFits.get(member)
  const moments = base.moments!
  if (last !== undefined && last.moments === moments && isSame(last.known, known)) return last.fit
  const fit = linearFit(base, { ...member, columns: known }, row)
  reducedFits.set(member, { moments, known, fit })
  return fit
}

const isSame = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((value, i) => value === b[i])

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

/** The regressions of the missing columns on the known ones, as last computed for the moments of a model. */
const completions = new WeakMap<Moments, Reduced<ReadonlyMap<number, LinearFit>>>()

/** The row with an estimate for each missing value: its regression on the known ones. */
function completeRow(base: ModelBase, row: Float64Array): Float64Array {
  const { moments } = base
  if (!row.some(Number.isNaN) || moments === undefined) return row
  const known = [...row.keys()].filter((column) => !Number.isNaN(row[column]!))
  const last = completions.get(moments)
  const fits =
    last !== undefined && isSame(last.known, known) ? last.fit : missingFits(moments, known, row.length)
  if (fits !== last?.fit) completions.set(moments, { moments, known, fit: fits })
  return row.map((value, missing) => {
    const found = fits.get(missing)
    if (found === undefined) return value
    return known.reduce((sum, column, i) => sum + found.weights[i]! * row[column]!, found.intercept)
  })
}

function missingFits(
  { rows, means, products }: Moments,
  known: readonly number[],
  width: number,
): ReadonlyMap<number, LinearFit> {
  const fits = new Map<number, LinearFit>()
  for (let missing = 0; missing < width; missing++) {
    if (known.includes(missing)) continue
    const order = [...known, missing]
    const moments: Moments = {
      rows,
      means: order.map((column) => means[column]!),
      products: order.map((a) => order.map((b) => products[a]![b]!)),
    }
    fits.set(missing, ridgeOf({ moments, columns: [...known.keys()] }, estimationPenalty))
  }
  return fits
}
