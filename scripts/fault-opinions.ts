/**
 * The opinions of a fault model in the evaluation of fault detection: the rows, thresholds and matches of
 * the product, with calls of many streams in one batch.
 */
import { limits } from '#base/limits/limits.ts'
import { loadModel } from '#inference/child/loaded-model.ts'
import { readModelDocument } from '#inference/folders/model-folder.ts'
import type { Judgement, StreamSample } from '#plugins/faults/detection/stream-detector.ts'
import { createModelRuleState, takeModel } from '#plugins/faults/models/model-rule.ts'
import {
  createWindowState,
  isCoarse,
  newestFeatures,
  runBegin,
  takeWindow,
} from '#plugins/faults/models/model-window.ts'
import { featureCount } from '#plugins/faults/models/window-features.ts'
import type { Match } from '#plugins/faults/rules/finding.ts'

export interface FaultModel {
  /** `ok` first. */
  readonly classes: readonly string[]
  readonly run: (rows: Float32Array, count: number) => Promise<Float32Array>
}

export async function openFaultModel(folder: string): Promise<FaultModel> {
  const document = await readModelDocument(folder)
  const { run } = await loadModel(folder, document)
  return { classes: document.outputs.map(({ name }) => name), run }
}

/** What the model's opinions about one stream depend on. */
export interface Advice {
  readonly window: ReturnType<typeof createWindowState>
  readonly rule: ReturnType<typeof createModelRuleState>
  /** Begin of each finding that lasts, by class. */
  readonly open: Map<string, number>
  isFault: boolean
}

export const createAdvice = (history: readonly StreamSample[]): Advice => {
  const advice = {
    window: createWindowState(),
    rule: createModelRuleState(),
    open: new Map<string, number>(),
    isFault: false,
  }
  const known = history.filter(({ value }) => !Number.isNaN(value))
  for (const { time, value } of known.slice(-limits.faultsModelHistoryMax.value))
    takeWindow(advice.window, { time, value })
  return advice
}

export const copiedAdvice = (advice: Advice): Advice => structuredClone(advice)

export interface Question {
  readonly advice: Advice
  readonly sample: StreamSample
}

/** The opinion about each sample, undefined where the model sees nothing unusual or cannot be used yet. */
export async function opinionsOf(
  model: FaultModel,
  questions: readonly Question[],
  intervalMs: number,
): Promise<readonly (Match | undefined)[]> {
  const features = questions.map(({ advice, sample }) => featuresOf(advice, sample, intervalMs))
  const count = features.filter((row) => row !== undefined).length
  if (count === 0) return questions.map(() => undefined)
  const rows = new Float32Array(count * featureCount)
  let next = 0
  for (const row of features) if (row !== undefined) rows.set(row, featureCount * next++)
  const probabilities = await model.run(rows, count)
  const { classes } = model
  next = 0
  return questions.map(({ advice: { rule, window }, sample: { time } }, i) => {
    if (features[i] === undefined) return undefined
    const own = probabilities.subarray(next * classes.length, ++next * classes.length)
    const match = takeModel(rule, { time, classes, probabilities: own, isCoarse: isCoarse(window) })
    return match && { ...match, begin: match.class === 'stuck' ? runBegin(window) : match.begin }
  })
}

function featuresOf(
  { window, open, isFault }: Advice,
  { time, value }: StreamSample,
  intervalMs: number,
): Float32Array | undefined {
  const newest = window.times.at(-1)
  if (Number.isNaN(value) || (newest !== undefined && time <= newest)) return undefined
  const begins = isFault ? [...open.values()] : []
  takeWindow(window, { value, time, faultBegin: begins.length === 0 ? undefined : Math.min(...begins) })
  return newestFeatures(window, intervalMs)
}

/** Notes the findings and the state of the stream, which decide what the window learns from. */
export function noteJudgement(advice: Advice, { state, begun, ended }: Judgement): void {
  advice.isFault = state === 'fault'
  for (const { class: found, begin } of begun) advice.open.set(found, begin)
  for (const { class: found } of ended) advice.open.delete(found)
}
