/** The choice of an ONNX model for a place without a history, by validation on its sources. */
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { neighbourhoodWidth } from './neighbourhood-features.ts'
import { chosenMember } from './neighbourhood-model.ts'
import type { Trials } from './neighbourhood-trials.ts'
import type { TrainingInput, VirtualSensorModel } from './virtual-sensor-model.ts'
import { trainVirtualSensor } from './virtual-sensor-training.ts'

const slotMs = 600_000
const slots = 200
const model = { name: 'some', sha256: 'ab' }

/** Sources around a place that vary together, without a history of the place. */
function inputOf(count: number): TrainingInput {
  const sources = Array.from({ length: count }, (_, i) => {
    const random = createSeededRandom(i + 1)
    return {
      id: `s${i}`,
      distance: 1000 * (i + 1),
      latitude: 56 + 0.01 * (i + 1),
      longitude: 10,
      times: Float64Array.from({ length: slots }, (_, slot) => slot * slotMs),
      values: Float64Array.from({ length: slots }, (_, slot) => 20 + 5 * Math.sin(slot / 9) + random()),
    }
  })
  return { target: { latitude: 56, longitude: 10 }, sources, slotMs, triesModel: true }
}

function trained(count: number): { model: VirtualSensorModel; trials?: Trials | undefined } {
  const outcome = trainVirtualSensor(inputOf(count))
  if ('failure' in outcome) throw new Error(outcome.failure)
  return outcome
}

describe('an ONNX model', () => {
  const { trials, model: built } = trained(4)
  /** In the scale of each trial. */
  const estimates = (of: (trial: Trials['trials'][number]) => number): number[] =>
    trials!.trials.map((trial) => (of(trial) - trial.scale.mean) / trial.scale.deviation)

  it('is tried at each source, with a row for each trial', () => {
    expect(new Set(trials!.trials.map(({ source }) => source))).toEqual(new Set([0, 1, 2, 3]))
    expect(trials!.rows).toHaveLength(trials!.trials.length * neighbourhoodWidth)
    expect(built.neighbourhood!.nearest).toEqual([0, 1, 2, 3])
  })

  it('gives the whole estimate if it is right', () => {
    const chosen = chosenMember(
      trials!,
      estimates(({ truth }) => truth),
      model,
    )
    expect(chosen).toMatchObject({ model: 'some', sha256: 'ab', share: 1 })
    expect(chosen!.error).toBeLessThan(1e-9)
  })

  it('gives half of it if it errs as far to the other side', () => {
    const mirrored = estimates(({ truth, blended }) => 2 * truth - blended)
    expect(chosenMember(trials!, mirrored, model)).toMatchObject({ share: 0.5 })
  })

  it('is left out if it is worse', () => {
    expect(
      chosenMember(
        trials!,
        estimates(({ truth }) => truth + 10),
        model,
      ),
    ).toBeUndefined()
    expect(
      chosenMember(
        trials!,
        estimates(() => Number.NaN),
        model,
      ),
    ).toBeUndefined()
  })

  it('is left out if it is better at a single source', () => {
    const one = estimates(({ source, truth, blended }) =>
      source === 0 ? truth : blended + 0.01 * (blended - truth),
    )
    expect(chosenMember(trials!, one, model)).toBeUndefined()
  })

  it('is not tried with two sources, whose other one alone cannot show anything', () => {
    expect(trained(2).trials).toBeUndefined()
  })
})
