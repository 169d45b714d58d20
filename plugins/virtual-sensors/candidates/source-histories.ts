/**
 * Reads the histories that a virtual sensor is trained with, and leaves out the values that a stuck sensor
 * repeated at the end.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import { numberOf } from '#client/streams/stream-entities.ts'
import type { BrokerPort } from '#contract'
import { streamHistory } from '#contract'
import { sosa } from '#contract/vocabulary.ts'
import type { Readings } from '#plugins/virtual-sensors/sources/slots.ts'

export interface HistorySpan {
  readonly from?: number | undefined
  readonly to?: number | undefined
  /** The newest values of the span that are read. */
  readonly last: number
  readonly signal: AbortSignal
  /** Pause between two slices, for reads that nobody waits for. */
  readonly restMs?: number | undefined
}

/** The numeric values of an observation entity, in order of time. @throws what `streamHistory` throws */
export async function readHistory(
  broker: BrokerPort,
  observation: string,
  { from, to, last, signal, restMs = 0 }: HistorySpan,
): Promise<Readings> {
  const slices: (readonly { readonly time: number; readonly value: number }[])[] = []
  const key = { id: observation, name: sosa.hasSimpleResult, dataset: '' }
  const most = limits.virtualSliceValues.value
  // Small slices keep the event loop free, whatever the history of a stream costs the broker.
  for (let left = last, end = to; left > 0; await delay(restMs)) {
    const wanted = Math.min(left, most)
    let count = 0
    for await (const slice of streamHistory(broker, key, { from, to: end, last: wanted, signal })) {
      count += slice.length
      end = slice[0]!.time
      slices.push(
        slice.flatMap(({ time, value }) => {
          const number = numberOf(value)
          return number === undefined ? [] : [{ time, value: number }]
        }),
      )
    }
    if (count < wanted) break
    left -= count
  }
  const all = slices.toReversed().flat()
  return {
    times: Float64Array.from(all, ({ time }) => time),
    values: Float64Array.from(all, ({ value }) => value),
  }
}

/** A sensor that repeats its value this often at the end is taken for stuck. */
const stuckRun = 20

/** Without the equal values at the end, if they are so many that the sensor seems to be stuck. */
export function withoutStuckEnd({ times, values }: Readings): Readings {
  let end = values.length
  while (end > 1 && values[end - 2] === values.at(-1)) end--
  // The first of the equal values may have been a good one.
  const isStuck = values.length - end + 1 >= stuckRun && end > 1
  return isStuck ? { times: times.subarray(0, end), values: values.subarray(0, end) } : { times, values }
}
