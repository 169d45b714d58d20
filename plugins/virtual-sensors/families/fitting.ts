/** Fits each family of virtual sensors to rows of the training table. Pure. */
import { type BoostingSettings, boostedTreesOf } from '#statistics/boosted-trees.ts'
import { momentsOf } from '#statistics/moments.ts'
import { penaltyByGcv } from '#statistics/ridge.ts'
import {
  type LinearMember,
  linearFit,
  type Member,
  type ModelBase,
  predictionOf,
  ridgeTask,
} from './members.ts'
import { binOfDay, columnsOf, dayBinsOf, rootRow } from './predictors.ts'

/** Rows of the training table with their times. */
export interface Part {
  readonly rows: readonly Float64Array[]
  readonly times: Float64Array
  readonly slotMs: number
}

export interface Family {
  readonly name: string
  /** A baseline without a regression. The choice is at least as good as the best of these. */
  readonly isSimple: boolean
  /** Undefined if the family does not suit the data. */
  readonly fit: (base: ModelBase, part: Part) => Member | undefined
}

type ColumnSet = 'values' | 'lags' | 'hours'

/** A linear regression as the specification has it is one with next to no penalty. */
const negligiblePenalty = 1e-9
/** Trees on fewer rows follow their noise. */
const treeRowsMin = 300
/** Bounds the time of a training: the more rows, the fewer trees. */
const treeVisitsMax = 400_000
const boosting: BoostingSettings = {
  trees: 120,
  depth: 4,
  rate: 0.06,
  leafMin: 12,
  shrinkage: 5,
  rowShare: 0.6,
  featureShare: 0.5,
  seed: 1,
}

const everything: readonly ColumnSet[] = ['values', 'lags', 'hours']

export const families: readonly Family[] = [
  {
    name: 'nearest',
    isSimple: true,
    fit: ({ distances }) => ({ kind: 'nearest', offsets: distances.map(() => 0) }),
  },
  inverseDistance('mean', 0),
  inverseDistance('inverse distance', 1),
  inverseDistance('inverse distance squared', 2),
  {
    name: 'climatology',
    isSimple: true,
    fit: (_, part) => ({ kind: 'climatology', profile: profileOf(part) }),
  },
  {
    name: 'nearest with offset',
    isSimple: false,
    fit: ({ distances, moments }) => ({
      kind: 'nearest',
      offsets: distances.map((_, i) => moments!.means.at(-1)! - moments!.means[i]!),
    }),
  },
  {
    name: 'linear regression',
    isSimple: false,
    fit: (base) =>
      linearMember(base, {
        columns: columnsOf(base.distances.length).values,
        penalty: negligiblePenalty,
        isResidual: false,
        isRoot: false,
      }),
  },
  ridge('ridge', ['values'], {}),
  ridge('residual ridge', ['values'], { isResidual: true }),
  ridge('ridge with lag and hour', everything, {}),
  ridge('root ridge with lag and hour', everything, { isRoot: true }),
  trees('trees', { isResidual: false }),
  trees('residual trees', { isResidual: true }),
]

/** Everything that members share, from the rows of a part. */
export function fittedBase(geometry: Pick<ModelBase, 'distances' | 'between'>, { rows }: Part): ModelBase {
  const sources = geometry.distances.length
  const { values, lags, width } = columnsOf(sources)
  const isPositive = rows.every((row) => [...values, ...lags, width].every((column) => row[column]! >= 0))
  const rootMoments = isPositive ? { rootMoments: momentsOf(rows.map((row) => rootRow(row, sources))) } : {}
  return { ...geometry, moments: momentsOf(rows), ...rootMoments }
}

function inverseDistance(name: string, power: number): Family {
  return { name, isSimple: true, fit: () => ({ kind: 'inverse-distance', power }) }
}

type RidgeForm = Partial<Pick<LinearMember, 'isResidual' | 'isRoot'>>

function ridge(name: string, sets: readonly ColumnSet[], form: RidgeForm): Family {
  const { isResidual = false, isRoot = false } = form
  return {
    name,
    isSimple: false,
    fit: (base) => {
      if (isRoot && base.rootMoments === undefined) return undefined
      const all = columnsOf(base.distances.length)
      const task = { columns: sets.flatMap((set) => all[set]), isResidual, isRoot }
      const penalty = penaltyByGcv(ridgeTask(base, task, new Float64Array(all.width)))
      return linearMember(base, { ...task, penalty })
    },
  }
}

function linearMember(
  base: ModelBase,
  task: Omit<LinearMember, 'kind' | 'weights' | 'intercept'>,
): LinearMember {
  const row = new Float64Array(columnsOf(base.distances.length).width)
  const { weights, intercept } = linearFit(base, task, row)
  return { kind: 'linear', ...task, weights: [...weights], intercept }
}

/** Trees for the target, or for the residual of a ridge regression with lag and hour. */
function trees(name: string, { isResidual }: { readonly isResidual: boolean }): Family {
  const linear = ridge('ridge with lag and hour', everything, {})
  return {
    name,
    isSimple: false,
    fit: (base, part) => {
      const { rows, times } = part
      if (rows.length < treeRowsMin) return undefined
      const member = isResidual ? linear.fit(base, part) : undefined
      const features = rows.map((row) => row.subarray(0, -1))
      const targets = Float64Array.from(rows, (row, i) =>
        member === undefined
          ? row.at(-1)!
          : row.at(-1)! - predictionOf(base, member, features[i]!, times[i]!),
      )
      const count = Math.min(boosting.trees, Math.ceil(treeVisitsMax / rows.length))
      const fitted = boostedTreesOf(features, targets, { ...boosting, trees: count })
      return { kind: 'trees', trees: fitted, ...(member?.kind === 'linear' ? { linear: member } : {}) }
    },
  }
}

/** The mean per time of day; times without a value get the mean of all. */
function profileOf({ rows, times, slotMs }: Part): number[] {
  const bins = dayBinsOf(slotMs)
  const sums = new Float64Array(bins)
  const counts = new Float64Array(bins)
  let all = 0
  rows.forEach((row, i) => {
    const bin = binOfDay(times[i]!, bins)
    sums[bin]! += row.at(-1)!
    counts[bin]!++
    all += row.at(-1)! / rows.length
  })
  return [...sums].map((sum, bin) => (counts[bin] === 0 ? all : sum / counts[bin]!))
}
