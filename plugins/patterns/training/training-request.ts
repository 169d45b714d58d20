/**
 * The request of a training: which streams, which span of their history, and how the model is trained. Pure.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { type Label, labelIn } from '#plugins/patterns/models/distance-models.ts'
import type { FeatureKind } from '#plugins/patterns/models/features.ts'
import { countIn, itemsIn, objectIn, type Placed } from '#plugins/patterns/models/model-json.ts'
import type { PreparationChoices } from '#plugins/patterns/models/train/learned-preparation.ts'
import { type TrainingTask, usualPreparation } from '#plugins/patterns/models/train/training.ts'
import { parseTemporal, type Temporal } from '#plugins/patterns/windows/temporal.ts'

/** Windows that lie within the span, ends included, have the label. */
export interface LabelledSpan {
  readonly from: number
  readonly to: number
  readonly label: Label
}

export interface TrainingRequest {
  /** Ids of the streams, in the order of the observable properties of the model. */
  readonly streams: readonly string[]
  readonly observableProperties: readonly string[]
  /** Times of observations, ms; `to` is excluded. */
  readonly from: number
  readonly to: number
  readonly temporal: Temporal
  /** As written, for the document of the model. */
  readonly temporalJson: Json | undefined
  readonly spans: readonly LabelledSpan[]
  readonly method: TrainingTask['method']
  readonly features: FeatureKind
  readonly components: number | undefined
  readonly neighbours: number
  readonly seed: number
  readonly preparation: PreparationChoices
}

const members = [
  'streams',
  'observableProperties',
  'from',
  'to',
  'temporal',
  'method',
  'features',
  'examples',
  'components',
  'neighbours',
  'seed',
  'levels',
  'weights',
]

/**
 * @param now end of the span if the request names none
 * @throws ngsi-ld.bad-request-data with the path of the mistake
 */
export function parseTrainingRequest(json: Json, now: number): TrainingRequest {
  const body = objectIn({ json, path: 'body' }, members)
  const streams = textsIn(body, 'streams')
  const properties = textsIn(body, 'observableProperties')
  if (properties.length !== streams.length)
    throw badRequestData(`must have one id for each of the ${streams.length} streams`, 'observableProperties')
  const method = choiceIn(body, 'method', ['gaussian-mixture', 'k-means', 'nearest-neighbour'])
  const features = choiceIn(body, 'features', ['segments', 'originals'])
  const from = timeIn({ json: body['from'], path: 'from' })
  const to = body['to'] === undefined ? now : timeIn({ json: body['to'], path: 'to' })
  if (to <= from) throw badRequestData('must be after from', 'to')
  const temporal = parseTemporal(body['temporal'])
  const { components, neighbours = 3, seed = 1 } = body
  return {
    streams,
    observableProperties: properties,
    from,
    to,
    temporal,
    temporalJson: body['temporal'],
    spans: spansIn(body, method),
    method,
    features,
    components:
      components === undefined
        ? undefined
        : countIn({ json: components, path: 'components' }, limits.patternComponentsMax.value),
    neighbours: countIn({ json: neighbours, path: 'neighbours' }, limits.patternExamplesMax.value),
    seed: countIn({ json: seed, path: 'seed' }, 0xffff_ffff),
    preparation: preparationIn(body, method, temporal),
  }
}

/**
 * Windows that overlap start at any phase of a course, so their levels count and no stream is more regular
 * than another.
 */
function preparationIn(
  body: JsonObject,
  method: TrainingTask['method'],
  { window, step }: Temporal,
): PreparationChoices {
  const usual = method === 'nearest-neighbour' ? usualPreparation.labelled : usualPreparation.unlabelled
  const isOverlapping = step < window
  const levels = isOverlapping ? (['kept', 'removed'] as const) : (['removed', 'kept'] as const)
  const weights =
    isOverlapping || usual.weights === 'equal'
      ? (['equal', 'regularity'] as const)
      : (['regularity', 'equal'] as const)
  return {
    levels: choiceIn(body, 'levels', levels),
    weights: choiceIn(body, 'weights', weights),
    explained: usual.explained,
  }
}

/** One of several texts; the first if the member is absent. */
function choiceIn<T extends string>(body: JsonObject, name: string, choices: readonly T[]): T {
  const written = body[name]
  if (written === undefined) return choices[0]!
  const choice = choices.find((one) => one === written)
  if (choice !== undefined) return choice
  throw badRequestData(`must be one of ${choices.toSorted().join(', ')}`, name)
}

function textsIn(body: JsonObject, name: string): readonly string[] {
  const lengths = { most: limits.patternPropertiesMax.value, what: 'ids' }
  return itemsIn({ json: body[name], path: name }, lengths).map(({ json, path }) => {
    if (typeof json === 'string' && json !== '' && json.length <= 1024) return json
    throw badRequestData('must be a text of 1 to 1024 characters', path)
  })
}

function timeIn({ json, path }: Placed): number {
  const time = typeof json === 'string' ? dateTimeToMs(json) : undefined
  if (time !== undefined) return time
  throw badRequestData('must be a time such as "2026-05-04T08:00:00Z"', path)
}

function spansIn(body: JsonObject, method: TrainingTask['method']): readonly LabelledSpan[] {
  const written = body['examples']
  if (method !== 'nearest-neighbour') {
    if (written === undefined) return []
    throw badRequestData('are used by the method nearest-neighbour only', 'examples')
  }
  const lengths = { most: limits.patternExamplesMax.value, what: 'examples' }
  return itemsIn({ json: written, path: 'examples' }, lengths).map((one) => {
    const { from, to, label } = objectIn(one, ['from', 'to', 'label'])
    const span = {
      from: timeIn({ json: from, path: `${one.path}.from` }),
      to: timeIn({ json: to, path: `${one.path}.to` }),
    }
    if (span.to < span.from) throw badRequestData('must not be before from', `${one.path}.to`)
    return { ...span, label: labelIn({ json: label, path: `${one.path}.label` }) }
  })
}
