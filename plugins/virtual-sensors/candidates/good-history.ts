/** The history of a broken sensor without what it reported while it was faulty. */

import { numberOf, propertyValue } from '#client/streams/stream-entities.ts'
import type { BrokerPort } from '#contract'
import { faultTerms } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { isObject, own } from '#ngsi-ld/values/json.ts'
import { commonSlotsMin } from '#plugins/virtual-sensors/sources/candidate-correlation.ts'
import type { Readings } from '#plugins/virtual-sensors/sources/slots.ts'
import type { BrokerEntities } from './broker-entities.ts'
import { readHistory, withoutStuckEnd } from './source-histories.ts'

/** Faults of a stream that are considered. */
const faultsMax = 200

interface Span {
  readonly from: number
  readonly to: number
}

export interface GoodHistoryRequest {
  readonly stream: string
  readonly observation: string
  /** The newest values that are read. */
  readonly last: number
  readonly signal: AbortSignal
  readonly restMs?: number | undefined
}

export interface GoodHistory {
  readonly readings: Readings
  /** Whether there may be earlier values, which were not read. */
  readonly isPart: boolean
}

/**
 * The newest values of the stream from before its present fault, without those of earlier faults. If too few
 * are left, such as of a sensor that was never well, it returns all; the test of correlation decides then.
 */
export async function readGoodHistory(
  { broker, entities }: { readonly broker: BrokerPort; readonly entities: BrokerEntities },
  { stream, observation, ...span }: GoodHistoryRequest,
): Promise<GoodHistory> {
  const faults = await entities.matching(
    { type: faultTerms.Fault, q: `${faultTerms.stream}=="${stream.replaceAll(/["\\]/g, '')}"` },
    faultsMax,
  )
  const spans = faults.flatMap(spanOf)
  const to = Math.min(...spans.filter((span) => span.to === Number.POSITIVE_INFINITY).map(({ from }) => from))
  if (to < Number.POSITIVE_INFINITY) {
    const before = await readHistory(broker, observation, { to, ...span })
    const good = outside(before, spans)
    if (good.times.length >= commonSlotsMin)
      return { readings: good, isPart: before.times.length >= span.last }
  }
  const all = await readHistory(broker, observation, span)
  const good = outside(all, spans)
  const readings = withoutStuckEnd(good.times.length >= commonSlotsMin ? good : all)
  return { readings, isPart: all.times.length >= span.last }
}

function outside({ times, values }: Readings, spans: readonly Span[]): Readings {
  const isGood = (time: number): boolean => !spans.some((span) => span.from <= time && time <= span.to)
  const kept = [...times.keys()].filter((i) => isGood(times[i]!))
  return {
    times: Float64Array.from(kept, (i) => times[i]!),
    values: Float64Array.from(kept, (i) => values[i]!),
  }
}

function spanOf(fault: Entity): Span[] {
  const from = timeOf(fault, faultTerms.begin)
  return from === undefined ? [] : [{ from, to: timeOf(fault, faultTerms.end) ?? Number.POSITIVE_INFINITY }]
}

/** A time as text, as an object with `@value`, or in milliseconds. */
function timeOf(entity: Entity, name: string): number | undefined {
  const value = propertyValue(entity, name)
  const text = isObject(value) ? own(value, '@value') : value
  const ms = typeof text === 'string' ? Date.parse(text) : numberOf(text)
  return ms === undefined || Number.isNaN(ms) ? undefined : ms
}
