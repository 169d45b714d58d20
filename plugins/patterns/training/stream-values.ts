/**
 * Reads the numeric values of streams from the history of the broker, in slices. They stay slices, so that
 * the main thread sorts nothing.
 */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { type BrokerPort, streamHistory } from '#contract'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import { isList, isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { TrainingRequest } from './training-request.ts'

/** A part of the values of a stream, in order of time. */
export interface ValueSlice {
  readonly times: Float64Array
  readonly values: Float64Array
}

export interface ReadingPorts {
  readonly signal: AbortSignal
  /** Share of the work, and values so far. */
  readonly onProgress: (share: number, values: number) => void
}

/**
 * Returns the slices of each stream.
 * @throws ngsi-ld.bad-request-data for a stream without observations, or too many values
 * @throws what `streamHistory` throws
 */
export async function readStreamValues(
  broker: BrokerPort,
  { streams, from, to }: Pick<TrainingRequest, 'streams' | 'from' | 'to'>,
  { signal, onProgress }: ReadingPorts,
): Promise<readonly (readonly ValueSlice[])[]> {
  const all: ValueSlice[][] = []
  let count = 0
  for (const [i, stream] of streams.entries()) {
    const slices: ValueSlice[] = []
    for (const id of await observationsOf(broker, stream, signal)) {
      const key = { id, name: sosa.hasSimpleResult, dataset: '' }
      for await (const slice of streamHistory(broker, key, { from, to, signal })) {
        signal.throwIfAborted()
        const numbers = slice.filter(({ value }) => typeof value === 'number')
        slices.push({
          times: Float64Array.from(numbers, ({ time }) => time),
          values: Float64Array.from(numbers, ({ value }) => value as number),
        })
        count += numbers.length
        if (count > limits.patternTrainingValuesMax.value)
          throw badRequestData(
            `the streams have more than ${limits.patternTrainingValuesMax.value} values; use a shorter span`,
            'from',
          )
        const read = (to - slice[0]!.time) / (to - from)
        onProgress((i + read) / streams.length, count)
      }
    }
    if (slices.every(({ times }) => times.length === 0))
      throw badRequestData('has no numeric values in this span', `streams[${i}]`)
    all.push(slices)
  }
  return all
}

/** Ids of the observation entities of a stream. */
async function observationsOf(
  broker: BrokerPort,
  stream: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const query = new URLSearchParams({
    type: iotStream.StreamObservation,
    q: `${iotStream.belongsTo}=="${stream.replaceAll(/["\\]/g, '')}"`,
    pick: 'id',
    limit: String(limits.clientReadPage.value),
  })
  const answer = await broker.exchange({
    method: 'GET',
    path: `/ngsi-ld/v1/entities?${query}`,
    headers: { Accept: 'application/json' },
    signal,
  })
  if ('failure' in answer) throw new GatewayError('peer.unavailable', answer.reason)
  const list = answer.status === 200 ? parsedJson(answer.text) : undefined
  if (!isList(list)) throw new GatewayError('peer.refused', `observations: ${answer.status}`)
  return list.flatMap((one) => (isObject(one) && typeof one['id'] === 'string' ? [one['id']] : []))
}
