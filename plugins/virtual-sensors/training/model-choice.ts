/**
 * The ONNX model of a virtual sensor without a history: which is assigned, whether validation chooses it,
 * and its predictions. Without the process of the models, the built-in families predict.
 */
import type { ModelDescription, ModelsPort } from '#contract'
import { intervalAround, spreadOf } from '#plugins/virtual-sensors/families/intervals.ts'
import { neighbourhoodWidth } from '#plugins/virtual-sensors/families/neighbourhood-features.ts'
import {
  chosenMember,
  mixed,
  neighbourhoodRow,
  type ReadingAt,
} from '#plugins/virtual-sensors/families/neighbourhood-model.ts'
import type { Trials } from '#plugins/virtual-sensors/families/neighbourhood-trials.ts'
import { clipped, type LatestReading, type Prediction } from '#plugins/virtual-sensors/families/prediction.ts'
import type { VirtualSensorModel } from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'

export type ModelCandidates = Pick<ModelsPort, 'assigned' | 'described' | 'run'>

/** Outputs of a row: the estimate, and the error that the model expects, which is not used. */
const outputNames = ['estimate', 'error']

/** The model that is assigned to a virtual sensor, if its tensors are those of the shipped one. */
export function candidateModel(
  models: Pick<ModelsPort, 'assigned'>,
  subject: { readonly property: string | undefined; readonly stream: string },
): ModelDescription | undefined {
  const found = models.assigned({ kind: 'virtual-sensor', ...subject })
  const isUsable =
    found?.inputNumbers === neighbourhoodWidth &&
    found.outputNumbers === outputNames.length &&
    outputNames.every((name, i) => found.outputs[i]?.name === name)
  return isUsable ? found : undefined
}

const rowsAtOnce = 256

/** The model with its ONNX model, if that is not worse. @throws what `run` throws */
export async function withChosenModel(
  models: Pick<ModelsPort, 'run'>,
  model: VirtualSensorModel,
  { trials, candidate }: { readonly trials: Trials; readonly candidate: ModelDescription },
): Promise<VirtualSensorModel> {
  const estimates: number[] = []
  for (let from = 0; from < trials.trials.length; from += rowsAtOnce) {
    const rows = trials.rows.subarray(from * neighbourhoodWidth, (from + rowsAtOnce) * neighbourhoodWidth)
    const outputs = await models.run(candidate.name, rows, rows.length / neighbourhoodWidth)
    for (let i = 0; i < outputs.length; i += outputNames.length) estimates.push(outputs[i]!)
  }
  const onnx = chosenMember(trials, estimates, candidate)
  if (onnx === undefined) return model
  return { ...model, onnx, family: onnx.model, error: onnx.error }
}

/** A prediction, and the ONNX model that took part. */
export type MethodPrediction = Prediction & { readonly method?: string }

/** Adds the share of the ONNX model to a prediction of the built-in families. */
export async function withModelShare(
  models: Pick<ModelsPort, 'described' | 'run'>,
  model: VirtualSensorModel,
  {
    blended,
    latest,
    at,
  }: { blended: Prediction; latest: readonly (LatestReading | undefined)[]; at: number },
): Promise<MethodPrediction> {
  const { onnx, neighbourhood } = model
  if (onnx === undefined || neighbourhood === undefined) return blended
  // Another version has not been validated.
  if (models.described(onnx.model)?.sha256 !== onnx.sha256) return blended
  const readingAt = (source: number) => readingOf(model, source, { reading: latest[source], at })
  const row = rowOf(model, at, readingAt)
  if (row === undefined) return blended
  try {
    const [estimate] = await models.run(onnx.model, row, 1)
    const value = mixed(blended.value, estimate!, { share: onnx.share, scale: neighbourhood.scale })
    if (!Number.isFinite(value)) return blended
    const missing = model.sources.length - blended.used.length
    const spread = spreadOf(
      Float64Array.from(model.sources, (_, i) => readingAt(i).value),
      model.sources.length,
    )
    const { error, halfWidth } = intervalAround(onnx.interval, { predicted: value, spread, missing })
    return {
      ...blended,
      value: clipped(value, model.range),
      error,
      low: clipped(value - halfWidth, model.range),
      high: clipped(value + halfWidth, model.range),
      method: `model:${onnx.model}@sha256:${onnx.sha256}`,
    }
  } catch {
    // The models report why they cannot run.
    return blended
  }
}

/** The last value of a source at a time, unless it is too old. */
function readingOf(
  { slotMs, holdMs }: VirtualSensorModel,
  source: number,
  { reading, at }: { readonly reading: LatestReading | undefined; readonly at: number },
): ReturnType<ReadingAt> {
  const ageMs = reading === undefined ? Number.NaN : Math.max(0, at - reading.time)
  const isUsable = ageMs <= holdMs[source]! && Number.isFinite(reading?.value)
  return isUsable
    ? { value: reading!.value, ageSlots: Math.floor(ageMs / slotMs) }
    : { value: Number.NaN, ageSlots: 0 }
}

function rowOf(model: VirtualSensorModel, at: number, readingAt: ReadingAt): Float32Array | undefined {
  const kriging = model.members.find(({ member }) => member.kind === 'kriging')?.member
  if (kriging?.kind !== 'kriging') return undefined
  const geometry = { ...model, correlogram: kriging.correlogram }
  return neighbourhoodRow(model.neighbourhood!, geometry, { at, readingAt })
}
