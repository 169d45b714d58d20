/**
 * Trains a model from windows: k-means or a Gaussian mixture without labels, nearest neighbours from labelled
 * windows. Pure and repeatable: the same task makes the same model.
 */
import { limits } from '#base/limits/limits.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Label } from '#plugins/patterns/models/distance-models.ts'
import type { FeatureKind } from '#plugins/patterns/models/features.ts'
import { type Preparation, prepare } from '#plugins/patterns/models/preparation.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { type Clusters, clustersCriterion, clustersOf } from './k-means-training.ts'
import { learnPreparation, type PreparationChoices } from './learned-preparation.ts'
import { fitMixture, mixtureCriterion } from './mixture-training.ts'

export interface TrainingTask {
  readonly method: 'k-means' | 'gaussian-mixture' | 'nearest-neighbour'
  readonly features: FeatureKind
  /** The features of each window. */
  readonly windows: readonly Float64Array[]
  /** The label of each window, for `nearest-neighbour`. */
  readonly labels: readonly Label[]
  /** Number of clusters or components; by the Bayesian information criterion if undefined. */
  readonly components?: number | undefined
  readonly neighbours: number
  readonly seed: number
  /** Used for the features `segments`. */
  readonly preparation: PreparationChoices
}

/** Fitted numbers of clusters so far, of all that are tried. */
export type OnTrained = (done: number, total: number) => void

export interface Trained {
  /** For `parseModel`. */
  readonly model: JsonObject
  /** Number of labels that the model distinguishes. */
  readonly labelCount: number
}

/** For days, and other windows that start at the same phase. Chosen on parking counts: docs/decisions. */
export const usualPreparation = {
  labelled: { levels: 'removed', weights: 'equal', explained: 0.8 },
  unlabelled: { levels: 'removed', weights: 'regularity', explained: 0.7 },
} as const satisfies Record<string, PreparationChoices>

/** k-means starts so often for each number of clusters. */
const attempts = 10

/** @throws ngsi-ld.bad-request-data if there are no windows */
export function train(task: TrainingTask, onTrained: OnTrained = () => {}): Trained {
  const { method, windows, labels, neighbours } = task
  if (windows.length === 0) throw badRequestData('must have at least one window', 'windows')
  const learned = task.features === 'segments' ? learnPreparation(windows, task.preparation) : undefined
  const points = learned === undefined ? windows : windows.map((window) => prepare(learned, window))
  const prepared = learned === undefined ? {} : { preparation: jsonOfPreparation(learned) }
  if (method === 'nearest-neighbour') {
    const least = Math.min(neighbours, points.length)
    const model = {
      kind: method,
      ...prepared,
      neighbours: least,
      examples: rowsOf(points),
      labels: [...labels],
    }
    return { model, labelCount: new Set(labels).size }
  }
  const best = bestFit(method, { task, points, onTrained })
  return { model: { kind: method, ...prepared, ...best.members }, labelCount: best.labelCount }
}

interface Fit {
  /** Members of the JSON of the model. */
  readonly members: JsonObject
  readonly labelCount: number
  /** How badly it describes the points; compares attempts with one number of clusters. */
  readonly misfit: number
  /** The Bayesian information criterion; compares numbers of clusters. */
  readonly criterion: number
}

const fits: Readonly<Record<'k-means' | 'gaussian-mixture', (points: Points, start: Clusters) => Fit>> = {
  'k-means': clustersFit,
  'gaussian-mixture': mixtureFit,
}
type Points = readonly Float64Array[]

/** The best attempt of the best number of clusters. */
function bestFit(
  method: keyof typeof fits,
  { task, points, onTrained }: { task: TrainingTask; points: Points; onTrained: OnTrained },
): Fit {
  const random = createSeededRandom(task.seed)
  const counts = countsOf(task, points)
  let best: Fit | undefined
  for (const [i, count] of counts.entries()) {
    const starts = startsOf(points, count, random)
    let bestOfCount: Fit | undefined
    for (const [at, start] of starts.entries()) {
      const fit = fits[method](points, start)
      if (bestOfCount === undefined || fit.misfit < bestOfCount.misfit) bestOfCount = fit
      onTrained(i + (at + 1) / starts.length, counts.length)
    }
    if (best === undefined || bestOfCount!.criterion < best.criterion) best = bestOfCount!
  }
  return best!
}

/** The different results of k-means; equal ones differ by rounding only. */
function startsOf(points: Points, count: number, random: () => number): readonly Clusters[] {
  const found = new Map<string, Clusters>()
  for (let attempt = 0; attempt < attempts; attempt++) {
    const clusters = clustersOf(points, count, random)
    found.set(clusters.inertia.toPrecision(9), clusters)
  }
  return [...found.values()]
}

/** Numbers of clusters to try: those for which there are enough windows, from two on. */
function countsOf({ components }: TrainingTask, points: Points): readonly number[] {
  if (components !== undefined) return [Math.min(components, points.length)]
  const most = Math.min(limits.patternTriedComponentsMax.value, Math.floor(points.length / 5))
  return Array.from({ length: Math.max(1, most - 1) }, (_, i) => Math.min(i + 2, points.length))
}

function clustersFit(_points: Points, clusters: Clusters): Fit {
  const centroids = rowsOf(clusters.centroids)
  const criterion = clustersCriterion(clusters)
  return { members: { centroids }, labelCount: centroids.length, misfit: clusters.inertia, criterion }
}

function mixtureFit(points: Points, start: Clusters): Fit {
  const fitted = fitMixture(points, start)
  const { weights, means, covariances, likelihood } = fitted
  return {
    members: { weights: [...weights], means: rowsOf(means), covariances: covariances.map(rowsOf) },
    labelCount: means.length,
    misfit: -likelihood,
    criterion: mixtureCriterion(fitted, points.length),
  }
}

const rowsOf = (rows: Points): number[][] => rows.map((row) => [...row])

const jsonOfPreparation = ({ means, scales, axes = [] }: Preparation): JsonObject => ({
  means: [...means],
  scales: [...scales],
  axes: rowsOf(axes),
})
