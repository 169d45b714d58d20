/**
 * What another broker holds of a history already, from its own answer: brokers other than this one write down twice what is told
 * twice, so they are asked before they are told. What an answer does not show is taken as unknown there. Pure.
 */

import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, listOf, own, parsedJson, stableJson } from '#ngsi-ld/values/json.ts'
import type { Attributes } from '#uplink/steps/step-plan.ts'

/** The question for what is known of some observed instances (GS CIM 009, 5.7.3); no edge of the span is in doubt. */
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

/** The instances that an answer does not show. */
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

/** An observation is what was observed, of what, and when; brokers differ in the rest. */
function identityOf(instance: JsonObject): string {
  const { type, observedAt, datasetId = null } = instance
  const { member } = kindOf({ type: textOf(type) })
  return stableJson([own(instance, member) ?? null, dateTimeToMs(textOf(observedAt)) ?? null, datasetId])
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
