/**
 * The work of a training on the values of its streams: windows, features, model. It runs in the training
 * thread. Pure.
 */
import { limits } from '#base/limits/limits.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Label } from '#plugins/patterns/models/distance-models.ts'
import { featuresOf } from '#plugins/patterns/models/features.ts'
import { type OnTrained, train } from '#plugins/patterns/models/train/training.ts'
import type { CachedSeries } from '#plugins/patterns/windows/cached-series.ts'
import { type RowWindow, rowsOf, windowsOf } from '#plugins/patterns/windows/rows.ts'
import type { ValueSlice } from './stream-values.ts'
import type { TrainingRequest } from './training-request.ts'

export interface TrainingJob {
  readonly request: TrainingRequest
  /** The values of each stream. */
  readonly values: readonly (readonly ValueSlice[])[]
}

export interface TrainedModel {
  /** Members of the document by which the model can be registered. */
  readonly document: JsonObject
  /** Windows from which it was trained. */
  readonly windows: number
}

/** @throws ngsi-ld.bad-request-data if there are too few or too many windows */
export function runTraining({ request, values }: TrainingJob, onTrained: OnTrained): TrainedModel {
  const { temporal, features, method } = request
  const windows: Float64Array[] = []
  const labels: Label[] = []
  const most =
    method === 'nearest-neighbour' ? limits.patternExamplesMax.value : limits.patternTrainingWindowsMax.value
  const series = values.map(seriesOf)
  const rows = rowsOf(series, temporal, request.from)
  for (const window of windowsOf(rows, series, { ...temporal, since: request.from })) {
    const label = labelOf(request, window)
    if (method === 'nearest-neighbour' && label === undefined) continue
    windows.push(featuresOf(features, window.columns))
    if (label !== undefined) labels.push(label)
    if (windows.length > most)
      throw badRequestData(`has more than ${most} windows; use a larger step or a shorter span`, 'temporal')
  }
  const least = method === 'nearest-neighbour' ? 1 : Math.max(2, request.components ?? 2)
  if (windows.length < least)
    throw badRequestData(
      `the history has ${windows.length} ${method === 'nearest-neighbour' ? 'labelled ' : ''}windows of ${temporal.window} rows, at least ${least} are needed`,
      'from',
    )
  const { components, neighbours, seed, preparation } = request
  const { model, labelCount } = train(
    { method, features, windows, labels, components, neighbours, seed, preparation },
    onTrained,
  )
  const names = Array.from({ length: labelCount }, (_, i) => `pattern-${i + 1}`)
  const named = method === 'nearest-neighbour' ? {} : { labels: names }
  const written = request.temporalJson === undefined ? {} : { temporal: request.temporalJson }
  return { document: { model, ...named, features, ...written }, windows: windows.length }
}

function seriesOf(slices: readonly ValueSlice[]): CachedSeries {
  const byTime = new Map<number, number>()
  for (const { times, values } of slices)
    for (const [i, time] of times.entries()) byTime.set(time, values[i]!)
  const times = [...byTime.keys()].sort((a, b) => a - b)
  return { times, values: times.map((time) => byTime.get(time)!) }
}

/** The label of the first span that contains the window. */
const labelOf = ({ spans }: TrainingRequest, { start, end }: RowWindow): Label | undefined =>
  spans.find(({ from, to }) => from <= start && end <= to)?.label
