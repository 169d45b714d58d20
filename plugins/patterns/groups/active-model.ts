/** A registered model as it is applied, and its groups of streams with their cached values. */
import { type FeatureKind, featuresOf } from '#plugins/patterns/models/features.ts'
import type { OnnxModel } from '#plugins/patterns/models/onnx-model.ts'
import type { PatternModel } from '#plugins/patterns/models/pattern-model.ts'
import { type CachedSeries, firstFrom } from '#plugins/patterns/windows/cached-series.ts'
import { type Rows, type RowWindow, reachedBy, rowsOf, windowsOf } from '#plugins/patterns/windows/rows.ts'
import type { Temporal } from '#plugins/patterns/windows/temporal.ts'
import type { UnlabelledWindow, WindowPattern } from '#plugins/patterns/windows/window-pattern.ts'
import type { Spatial } from './spatial.ts'

/** The rules of a registered model for groups and labels. */
export interface ModelRules {
  readonly id: string
  readonly properties: readonly string[]
  readonly model: PatternModel | OnnxModel
  readonly features: FeatureKind
  /** Names of the classes that the model numbers. */
  readonly labels: readonly string[]
  readonly spatial: Spatial
  readonly temporal: Temporal
}

/** One stream for each property of the model. */
export interface StreamGroup {
  /** Names the model and the streams; part of the ids of events. */
  readonly key: string
  readonly rules: ModelRules
  readonly streams: readonly string[]
  readonly series: readonly CachedSeries[]
  /** Time of the first row; undefined until rows are dropped for the first time. */
  since: number | undefined
  /** Values since its rows were counted; each makes one row at most. */
  uncounted: number
}

export const groupKey = ({ id }: Pick<ModelRules, 'id'>, streams: readonly string[]): string =>
  [id, ...streams].join(' ')

/** A window with its label, or with the features for an ONNX model. */
export type FoundWindow = WindowPattern | UnlabelledWindow

/** The patterns of the windows of a group that end at a time or later. */
export function* patternsOf(group: StreamGroup, since: number): Generator<FoundWindow> {
  const { rules, series } = group
  const rows = rowsFrom(group, since)
  for (const window of windowsOf(rows, series, { ...rules.temporal, since })) {
    const pattern = patternOf(window, rules)
    if (pattern !== undefined) yield pattern
  }
}

/** All rows, or as many as the windows need. */
function rowsFrom({ rules, series, since }: StreamGroup, end: number): Rows {
  const { temporal } = rules
  let from = since ?? Number.NEGATIVE_INFINITY
  // Without steps or hours a row does not depend on those before its window.
  if (temporal.step === 1 && temporal.hours === undefined)
    for (const { times } of series)
      from = Math.max(from, times[firstFrom(times, end) - temporal.window] ?? Number.NEGATIVE_INFINITY)
  return rowsOf(series, temporal, from)
}

export const allRows = ({ rules, series, since }: StreamGroup): Rows =>
  rowsOf(series, rules.temporal, since ?? Number.NEGATIVE_INFINITY)

export const reachedIn = ({ series }: StreamGroup): number => reachedBy(series) ?? Number.NEGATIVE_INFINITY

function patternOf({ start, end, columns }: RowWindow, rules: ModelRules): FoundWindow | undefined {
  const features = featuresOf(rules.features, columns)
  if (rules.model.kind === 'onnx') return { start, end, features }
  const { label, confidence } = rules.model.classify(features)
  if (!Number.isFinite(confidence)) return undefined
  return { start, end, label: patternName(label, rules), confidence }
}

/** Numbered classes without a name are pattern-1, pattern-2, ... */
export function patternName(
  label: string | number,
  { labels, model }: Pick<ModelRules, 'labels' | 'model'>,
): string {
  if (typeof label === 'string') return label
  return labels[label] ?? (model.kind === 'nearest-neighbour' ? `${label}` : `pattern-${label + 1}`)
}
