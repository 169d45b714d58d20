/**
 * Finds out which history the centre already holds. Brokers other than Selvedge store a repeated instance
 * twice, so they are queried before past values are sent. Instances missing from the response count as
 * missing there. Pure.
 */

import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, listOf, own, parsedJson, stableJson } from '#ngsi-ld/values/json.ts'
import type { Attributes } from '#uplink/steps/step-plan.ts'

/**
 * The query for some observed instances (GS CIM 009, 5.7.3), widened so that it includes both edges of the
 * span.
 */
export function historyQuery(id: string, attributes: Attributes): string {
  const times = [...attributes.values()]
    .flat()
    .flatMap(({ observedAt }) => dateTimeToMs(observedAt ?? '') ?? [])
  const count = Math.max(...[...attributes.values()].map(({ length }) => length))
  const parameters = new URLSearchParams({
    attrs: [...attributes.keys()].join(),
    timerel: 'between',
    timeAt: msToDateTime(Math.min(...times) - 1),
    endTimeAt: msToDateTime(Math.max(...times) + 1),
    lastN: String(2 * count),
  })
  return `/temporal/entities/${encodeURIComponent(id)}?${parameters}`
}

/** The instances that a response does not contain. */
export function withoutKnown(attributes: Attributes, answer: string): Attributes {
  const json = parsedJson(answer)
  const entity = isObject(json) ? json : {}
  const left = new Map<string, readonly AttributeInstance[]>()
  for (const [name, instances] of attributes) {
    const known = new Set(
      listOf(own(entity, name) ?? []).flatMap((one) => (isObject(one) ? identityOf(one) : [])),
    )
    const some = instances.filter((one) => !known.has(identityOf(one as unknown as JsonObject)))
    if (some.length > 0) left.set(name, some)
  }
  return left
}

/** An observation is identified by value, attribute and time; brokers differ in the rest. */
function identityOf(instance: JsonObject): string {
  const { type, observedAt, datasetId = null } = instance
  const { member } = kindOf({ type: textOf(type) })
  return stableJson([own(instance, member) ?? null, dateTimeToMs(textOf(observedAt)) ?? null, datasetId])
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
