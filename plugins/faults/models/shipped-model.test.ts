/**
 * The shipped fault model in the ONNX runtime, on streams that it was not trained on, and the features and alarms
 * around it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ModelDocument } from '#config/schema/model-schema.ts'
import { type LoadedModel, loadModel } from '#inference/child/loaded-model.ts'
import { readModelDocument } from '#inference/folders/model-folder.ts'
import type { Match } from '#plugins/faults/rules/finding.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { createModelRuleState, takeModel } from './model-rule.ts'
import { createWindowState, isCoarse, newestFeatures, takeWindow } from './model-window.ts'
import { streamScaleOf } from './stream-scale.ts'
import { featureCount, windowLength, writeFeatures } from './window-features.ts'

const models = join(import.meta.dirname, '../../../models')
const folder = join(models, 'stream-window')
let model: LoadedModel
let document: ModelDocument
beforeAll(async () => {
  document = await readModelDocument(folder)
  model = await loadModel(folder, document)
})
afterAll(() => model.unload())

/** A room temperature with a daily course, every 10 minutes, to one decimal. */
function room(seed: number, count: number): number[] {
  const random = createSeededRandom(seed)
  let slow = 0
  return Array.from({ length: count }, (_, i) => {
    slow = 0.9 * slow + (random() - 0.5) * 0.6
    const value = 21 + 2 * Math.sin((2 * Math.PI * i) / 144) + slow + (random() - 0.5) * 0.3
    return Math.round(value * 10) / 10
  })
}

/** What the model says about each value, as a plugin would ask it. */
async function judged(values: readonly number[]): Promise<(Match | undefined)[]> {
  const window = createWindowState()
  const rule = createModelRuleState()
  const classes = document.outputs.map(({ name }) => name)
  const matches: (Match | undefined)[] = []
  for (const [time, value] of values.entries()) {
    takeWindow(window, { value, time })
    const features = newestFeatures(window, 1)
    const probabilities = features === undefined ? undefined : await model.run(features, 1)
    matches.push(
      probabilities && takeModel(rule, { time, classes, probabilities, isCoarse: isCoarse(window) }),
    )
  }
  return matches
}

const classesIn = (matches: readonly (Match | undefined)[]) => [
  ...new Set(matches.flatMap((one) => (one === undefined ? [] : [one.class]))),
]

describe('the shipped fault model', () => {
  it('calls a sensor stuck before its 8th equal value, and lastingly', async () => {
    const values = room(1, 300)
    const matches = await judged([...values, ...new Array<number>(20).fill(values.at(-1)!)])
    const found = matches.slice(300).findIndex((one) => one?.kind === 'definite')
    expect(found).toBeLessThan(8)
    expect(matches[300 + found]).toMatchObject({ class: 'stuck' })
    expect(matches.at(-1)).toMatchObject({ class: 'stuck', kind: 'definite' })
  })

  it('recognizes a spike at the value after it', async () => {
    const values = room(2, 300)
    values[280]! += 8
    const matches = await judged(values)
    expect(matches[280]).toBeUndefined()
    expect(matches[281]).toMatchObject({ class: 'spike', kind: 'anomaly' })
  })

  it('recognizes noise', async () => {
    const random = createSeededRandom(9)
    const values = room(3, 300).map((value, i) => (i < 280 ? value : value + (random() - 0.5) * 12))
    expect(classesIn((await judged(values)).slice(280))).toContain('noise')
  })

  it('finds nothing definite in healthy streams, and alarms rarely', async () => {
    const matches = (await Promise.all([4, 5, 6].map((seed) => judged(room(seed, 1500))))).flat()
    expect(matches.some((one) => one?.kind === 'definite')).toBe(false)
    expect(matches.filter((one) => one !== undefined).length).toBeLessThan(9)
  })
})

it('leaves a stream whose values often repeat to the rules', async () => {
  const values = room(8, 600).map((value) => Math.round(value / 2) * 2)
  expect(classesIn(await judged(values))).not.toContain('stuck')
})

describe('the features of a window', () => {
  it('are those of the training', () => {
    const { history, slots, features } = JSON.parse(
      readFileSync(join(models, 'train', 'fault-vector.json'), 'utf8'),
    ) as Record<'history' | 'slots' | 'features', number[]>
    const target = new Float32Array(featureCount)
    const values = history.slice(-windowLength)
    writeFeatures({ values, slots }, streamScaleOf(history)!, { target, offset: 0 })
    target.forEach((feature, i) => {
      expect(feature).toBeCloseTo(features[i]!, 5)
    })
  })

  it('begin anew when values come much faster than in the history', () => {
    const window = createWindowState()
    const values = room(7, 200)
    for (const [i, value] of values.entries()) takeWindow(window, { value, time: i * 600_000 })
    expect(newestFeatures(window, undefined)).toBeDefined()
    const known = values.slice(0, 64).map((value, i) => {
      takeWindow(window, { value, time: 199 * 600_000 + (i + 1) * 2000 })
      return newestFeatures(window, undefined) !== undefined
    })
    expect(known.indexOf(true)).toBe(63)
  })

  it('do not exist for a stream that never varied', () => {
    const window = createWindowState()
    for (let i = 0; i < 200; i++) takeWindow(window, { value: 5, time: i })
    expect(newestFeatures(window, 1)).toBeUndefined()
  })
})
