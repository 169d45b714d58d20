/** A virtual sensor's model as a linear model: the same predictions, or an error that names the family. */
import { describe, expect, it } from 'vitest'
import { linearExportOf } from './linear-export.ts'
import { blendedValue } from './prediction.ts'
import type { VirtualSensorModel, WeightedMember } from './virtual-sensor-model.ts'

const linear: WeightedMember = {
  family: 'ridge',
  weight: 0.75,
  member: {
    kind: 'linear',
    columns: [0, 1, 2, 5],
    penalty: 1,
    isResidual: false,
    isRoot: false,
    weights: [0.5, 0.25, -0.125, 2],
    intercept: 3,
  },
}
const nearby: WeightedMember = {
  family: 'inverse-distance',
  weight: 0.25,
  member: { kind: 'inverse-distance', power: 2 },
}
const modelOf = (...members: WeightedMember[]): VirtualSensorModel => ({
  family: 'blend',
  sources: ['urn:a', 'urn:b'],
  distances: [100, 200],
  between: [
    [0, 150],
    [150, 0],
  ],
  holdMs: [1, 1],
  slotMs: 600_000,
  members,
  error: 0.3,
  interval: {} as VirtualSensorModel['interval'],
  rows: 200,
  range: {},
})

describe('the linear model of a virtual sensor', () => {
  it('predicts what its families predict together', () => {
    const model = modelOf(linear, nearby)
    const { coefficients, intercept, name, card } = linearExportOf('urn:ngsi-ld:Sensor:d:t:VS', model)
    const row = Float64Array.of(21, 19.5, 20, 19, 0.1, -0.9, 0.3, 0.4, 0.5, 0.6)
    const value = coefficients.reduce((sum, one, i) => sum + one * row[i]!, intercept)
    expect(value).toBeCloseTo(blendedValue(model, row, 0), 9)
    expect(name).toMatch(/^vs-[0-9a-f]{16}$/)
    expect(card).toContain('- urn:b')
  })

  it('does not exist for a family that is not linear', () => {
    const member = { kind: 'climatology', profile: [1, 2] } as const
    const model = modelOf(linear, { family: 'daily profile', weight: 0.5, member })
    expect(() => linearExportOf('urn:x', model)).toThrow(
      /all its families are linear .*; this one also uses daily profile\./,
    )
  })
})
