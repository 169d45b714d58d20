/** Fits each family to a part of the training table. Pure. */
import { type Moments, momentsOf } from '#statistics/moments.ts'
import { penaltyByGcv } from '#statistics/ridge.ts'
import { type LinearMember, linearFit, type Member, type ModelBase, priorOf } from './members.ts'
import { binOfDay, columnsOf, dayBinsOf } from './predictors.ts'

/** Rows of the training table with their times. */
export interface Part {
  readonly rows: readonly Float64Array[]
  readonly times: Float64Array
  readonly slotMs: number
}

export interface Family {
  readonly name: string
  /** A baseline that needs no regression: the choice is never worse than the best of these. */
  readonly isSimple: boolean
  readonly fit: (base: FittedBase, part: Part) => Member
}

type FittedBase = ModelBase & { readonly moments: Moments }

/** A linear regression as the specification has it is one with next to no penalty. */
const negligiblePenalty = 1e-9

const inverseDistance = (name: string, power: number): Family => ({
  name,
  isSimple: true,
  fit: () => ({ kind: 'inverse-distance', power }),
})

const linear = (
  name: string,
  sets: readonly ('values' | 'lags' | 'hours')[],
  isResidual: boolean,
): Family => ({
  name,
  isSimple: false,
  fit: (base) => {
    const all = columnsOf(base.distances.length)
    const columns = sets.flatMap((set) => all[set])
    const row = new Float64Array(all.width)
    const prior = isResidual ? { prior: priorOf(base, columns, row) } : {}
    const penalty = penaltyByGcv({ moments: base.moments, columns, ...prior })
    return linearMember(base, { columns, penalty, isResidual })
  },
})

export const families: readonly Family[] = [
  {
    name: 'nearest',
    isSimple: true,
    fit: (base) => ({ kind: 'nearest', offsets: base.distances.map(() => 0) }),
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
      offsets: distances.map((_, i) => moments.means.at(-1)! - moments.means[i]!),
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
      }),
  },
  linear('ridge', ['values'], false),
  linear('residual ridge', ['values'], true),
  linear('ridge with lag and hour', ['values', 'lags', 'hours'], false),
]

function linearMember(
  base: FittedBase,
  task: Pick<LinearMember, 'columns' | 'penalty' | 'isResidual'>,
): LinearMember {
  const row = new Float64Array(columnsOf(base.distances.length).width)
  const { weights, intercept } = linearFit(base, task, row)
  return { kind: 'linear', ...task, weights: [...weights], intercept }
}

/** The mean per time of day; times without a value get the mean of all. */
function profileOf({ rows, times, slotMs }: Part): number[] {
  const bins = dayBinsOf(slotMs)
  const [sums, counts] = [new Float64Array(bins), new Float64Array(bins)]
  let all = 0
  rows.forEach((row, i) => {
    const bin = binOfDay(times[i]!, bins)
    sums[bin]! += row.at(-1)!
    counts[bin]!++
    all += row.at(-1)! / rows.length
  })
  return [...sums].map((sum, bin) => (counts[bin] === 0 ? all : sum / counts[bin]!))
}

export function fittedBase(geometry: Omit<ModelBase, 'moments'>, part: Part): FittedBase {
  return { ...geometry, moments: momentsOf(part.rows) }
}
