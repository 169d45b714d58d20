/** The features of the shipped virtual-sensor model, and the model itself in the ONNX runtime. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type LoadedModel, loadModel } from '#inference/child/loaded-model.ts'
import { readModelDocument } from '#inference/folders/model-folder.ts'
import {
  type Neighbourhood,
  neighbourhoodScale,
  neighbourhoodSources,
  neighbourhoodWidth,
  writeNeighbourhood,
} from './neighbourhood-features.ts'

const models = join(import.meta.dirname, '../../../models')
const folder = join(models, 'air-neighbours')
const read = (name: string): unknown => JSON.parse(readFileSync(join(models, 'train', name), 'utf8'))
let model: LoadedModel
beforeAll(async () => {
  model = await loadModel(folder, await readModelDocument(folder))
})
afterAll(() => model.unload())

/** Sources on a ring around the place. */
function ring(values: readonly number[]): Neighbourhood {
  const distances = values.map((_, i) => 5000 + 1000 * i)
  return {
    scale: { mean: 50, deviation: 20 },
    distances,
    between: distances.map((a, i) => distances.map((b, j) => (i === j ? 0 : (a + b) / 2))),
    means: values.map(() => 50),
  }
}

async function estimated(values: readonly number[]): Promise<{ value: number; error: number }> {
  const target = new Float32Array(neighbourhoodWidth)
  const known = values.filter((value) => !Number.isNaN(value))
  const kriging = known.reduce((sum, value) => sum + value, 0) / known.length
  const sources = values.map((value) => ({ value, ageSlots: 0 }))
  writeNeighbourhood(ring(values), { sources, kriging, at: 0 }, { target, offset: 0 })
  const [estimate, error] = await model.run(target, 1)
  return { value: 50 + 20 * estimate!, error: 20 * error! }
}

describe('the features of a neighbourhood', () => {
  it('are those of the training', () => {
    const { neighbourhood, slot, features } = read('neighbourhood-vector.json') as {
      neighbourhood: Neighbourhood
      slot: { values: (number | null)[]; ages: number[]; kriging: number; at: number }
      features: (number | null)[]
    }
    const target = new Float32Array(neighbourhoodWidth)
    const sources = slot.values.map((value, i) => ({ value: value ?? Number.NaN, ageSlots: slot.ages[i]! }))
    writeNeighbourhood(neighbourhood, { sources, kriging: slot.kriging, at: slot.at }, { target, offset: 0 })
    expect(features).toHaveLength(neighbourhoodWidth)
    target.forEach((feature, i) => {
      const expected = features[i]!
      if (expected === null) expect(feature).toBeNaN()
      else expect(feature).toBeCloseTo(expected, 5)
    })
  })

  it('have the scale of all known values', () => {
    const found = neighbourhoodScale([[10, 20, Number.NaN], [30], []])
    expect(found!.means).toEqual([15, 30, 20])
    expect(found!.scale.mean).toBe(20)
    expect(found!.scale.deviation).toBeCloseTo(Math.sqrt(200 / 3))
    expect(neighbourhoodScale([[5, 5], [5]])).toBeUndefined()
  })
})

describe('the shipped virtual-sensor model', () => {
  it('estimates what all sources report, also when some are silent', async () => {
    const all = new Array<number>(neighbourhoodSources).fill(70)
    expect((await estimated(all)).value).toBeCloseTo(70, -1)
    expect((await estimated(all.with(0, Number.NaN).with(5, Number.NaN))).value).toBeCloseTo(70, -1)
  })

  it('stays among the sources, and expects a larger error where they differ', async () => {
    const { value, error } = await estimated([20, 60, 100, 40])
    expect(value).toBeGreaterThan(20)
    expect(value).toBeLessThan(100)
    expect(error).toBeGreaterThan((await estimated([54, 55, 56, 55])).error)
  })
})
