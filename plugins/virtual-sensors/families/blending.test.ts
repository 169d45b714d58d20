/** Which families a blend has, and their weights. */
import { describe, expect, it } from 'vitest'
import { blendOf } from './blending.ts'
import type { Family } from './fitting.ts'
import { columnsOf } from './predictors.ts'

const slotMs = 600_000
const rowCount = 200
const sourceCount = 2

/** A family that predicts the value of one source. */
const familyOf = (source: number): Family => ({
  name: `source ${source}`,
  isSimple: true,
  fit: () => ({
    kind: 'linear',
    columns: [source],
    penalty: 0,
    isResidual: false,
    isRoot: false,
    weights: [1],
    intercept: 0,
  }),
})

/**
 * The blend of two families with unrelated errors. The square of the error of the second one is `ratio` times
 * that of the first one.
 */
function blendWith(ratio: number) {
  const rows = Array.from({ length: rowCount }, (_, i) => {
    const truth = 20 + (i % 7)
    const row = new Float64Array(columnsOf(sourceCount).width + 1)
    row[0] = truth + (i % 2 === 0 ? 1 : -1)
    row[1] = truth + (i % 4 < 2 ? 1 : -1) * Math.sqrt(ratio)
    row[row.length - 1] = truth
    return row
  })
  return blendOf({
    geometry: {
      distances: [1000, 1000],
      between: [
        [0, 1000],
        [1000, 0],
      ],
    },
    part: { rows, times: Float64Array.from(rows, (_, i) => i * slotMs), slotMs },
    families: [familyOf(0), familyOf(1)],
    progress: () => undefined,
  })
}

/** The error ratio at which the second family has this weight: a tenth of the least square is the penalty. */
const ratioOf = (weight: number): number => (1.1 * (1 - weight)) / weight - 0.1

describe('a blend', () => {
  it('has a family whose weight is a little above 3 %', () => {
    const { weights } = blendWith(ratioOf(0.031))
    expect(weights.map(({ family }) => family.name)).toEqual(['source 0', 'source 1'])
    expect(weights[1]!.weight).toBeCloseTo(0.031, 4)
  })

  it('leaves out a family whose weight is a little below 3 %, and the other one has all the weight', () => {
    const { weights, residuals } = blendWith(ratioOf(0.029))
    expect(weights).toMatchObject([{ family: { name: 'source 0' }, weight: 1 }])
    expect([...residuals.slice(0, 4)]).toEqual([-1, 1, -1, 1])
  })
})
