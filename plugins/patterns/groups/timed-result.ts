/** The value of an observation entity and its time. */
import type { Json } from '#contract'
import { sosa } from '#contract/vocabulary.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { own } from '#ngsi-ld/values/json.ts'

export interface TimedResult {
  readonly time: number
  readonly value: Json
  /** Whether the result has no observedAt, so that resultTime stands in for it. */
  readonly isUntimed: boolean
}

/** Undefined without a result, or without any time. */
export function timedResult(entity: Entity): TimedResult | undefined {
  const [instance] = instancesOf(entity, sosa.hasSimpleResult)
  const value = instance && own(instance, 'value')
  if (instance === undefined || value === undefined) return undefined
  const observedAt = own(instance, 'observedAt')
  const [result] = instancesOf(entity, sosa.resultTime)
  const text = observedAt ?? (result && timeText(own(result, 'value')))
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? undefined : { time, value, isUntimed: observedAt === undefined }
}

/** A time as text, or as an object with `@value`. */
const timeText = (value: Json | undefined): Json | undefined =>
  typeof value === 'object' && value !== null && '@value' in value ? value['@value'] : value
