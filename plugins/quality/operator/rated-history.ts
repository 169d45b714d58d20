/** The rated values of a stream over time, read from the history of its QoI entity at the broker. */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerPort, Json } from '#contract'
import { isObject, listOf, own, parsedJson } from '#ngsi-ld/values/json.ts'
import { qualityId } from '#plugins/quality/entities/quality-entity.ts'

const qoi = 'https://w3id.org/iot/qoi#'
const metrics = [
  'plausibility',
  'completeness',
  'frequency',
  'timeliness',
  'artificiality',
  'concordance',
] as const

/** For each metric with values: pairs of time (ms) and rated value, in order of time. */
export type RatedHistory = Partial<Record<(typeof metrics)[number], readonly (readonly [number, number])[]>>

/** The newest rated values of each metric. A stream that was not written yet has none. */
export async function ratedHistory(
  broker: BrokerPort,
  stream: string,
  signal: AbortSignal,
): Promise<RatedHistory> {
  const query = new URLSearchParams({
    attrs: metrics.map((metric) => `${qoi}${metric}`).join(','),
    lastN: String(limits.qualityHistoryValues.value),
  })
  const path = `/ngsi-ld/v1/temporal/entities/${encodeURIComponent(qualityId(stream))}?${query}`
  const answer = await broker.exchange({ method: 'GET', path, signal })
  if ('failure' in answer)
    throw new GatewayError('plugin.unavailable', `the history cannot be read: ${answer.reason}`)
  if (answer.status === 404) return {}
  const entity = parsedJson(answer.text)
  if (answer.status >= 300 || !isObject(entity))
    throw new GatewayError('plugin.unavailable', `the broker answered the history with ${answer.status}`)
  return Object.fromEntries(
    metrics.flatMap((metric) => {
      const instances = own(entity, `${qoi}${metric}`)
      const values = instances === undefined ? [] : listOf(instances).flatMap(ratedPoint)
      return values.length === 0 ? [] : [[metric, values.toSorted(([a], [b]) => a - b)] as const]
    }),
  )
}

function ratedPoint(instance: Json): (readonly [number, number])[] {
  if (!isObject(instance)) return []
  const rated = own(instance, `${qoi}hasRatedValue`)
  const value = isObject(rated) ? own(rated, 'value') : undefined
  const observedAt = own(instance, 'observedAt')
  const at = typeof observedAt === 'string' ? Date.parse(observedAt) : Number.NaN
  return typeof value === 'number' && !Number.isNaN(at) ? [[at, value]] : []
}
