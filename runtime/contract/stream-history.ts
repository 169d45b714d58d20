/**
 * Reads the history of one stream from any broker, in slices, through the temporal API of NGSI-LD. Each slice
 * is one request with `lastN`, so a broker answers with a bounded number of instances even if it has no pages
 * of history. Sources of past values are not reported: no broker stores them.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { contentOf } from '#ngsi-ld/query/query-match.ts'
import { msToDateTime, offsetDateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, listOf, parsedJson } from '#ngsi-ld/values/json.ts'
import { ngsiLdNull } from '#ngsi-ld/values/names.ts'
import type { BrokerPort, WrittenAnswer } from './broker-port.ts'
import type { Observation } from './changes-port.ts'

/** An attribute instance of an entity; canonical name, and '' for no datasetId. */
export type StreamKey = Pick<Observation, 'id' | 'name' | 'dataset'>

/** Observation times from <= ms < to, and of these the newest `last` values; all by default. */
export interface HistoryRange {
  readonly from?: number | undefined
  readonly to?: number | undefined
  readonly last?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface PastValue extends Pick<Observation, 'time' | 'value'> {
  /** Commit time at the broker, ms; undefined if it states none. */
  readonly committed: number | undefined
}

/**
 * The newest slice comes first; within a slice, values are in ascending order of time. A slice has at most
 * `limits.pluginSliceObservations` values. A stream without history has no slices. More values of one time
 * than fit into a slice are left out.
 *
 * @throws peer.timeout, peer.unavailable, peer.refused
 */
export async function* streamHistory(
  broker: BrokerPort,
  stream: StreamKey,
  { from = earliest, to = latest, last = Number.POSITIVE_INFINITY, signal }: HistoryRange,
): AsyncGenerator<readonly PastValue[]> {
  let end = to
  let left = last
  while (left > 0 && end > from) {
    const most = Math.min(left, limits.pluginSliceObservations.value)
    const answer = await answerOf(broker, stream, { from, to: end, last: most, signal })
    const all = answer === undefined ? [] : instancesIn(answer.text, stream)
    const within = all.filter(({ time }) => time >= from && time < end)
    if (within.length === 0) return
    const isWhole = answer!.status === 200 && all.length < answer!.last
    const own = within.filter(({ dataset }) => dataset === stream.dataset)
    // Older instances of the earliest time may be missing, so the next slice begins with that time.
    const isEnd = isWhole || own.length >= left
    const later = isEnd ? within : within.filter(({ time }) => time > within[0]!.time)
    const taken = later.length > 0 ? later : within
    end = taken[0]!.time
    const slice = own.filter(({ time }) => time >= end).slice(-left)
    if (slice.length > 0) yield slice.map(({ dataset: _, ...value }) => value)
    if (isWhole) return
    left -= slice.length
    await nextTurn()
  }
}

/** Years 0001 to 9999. */
const [earliest, latest] = [-62_135_596_800_000, 253_402_300_799_999]

/** Undefined if the broker has no such history; `last` is the number of instances that it was asked for. */
async function answerOf(
  broker: BrokerPort,
  { id, name, dataset }: StreamKey,
  {
    from,
    to,
    last,
    signal,
  }: Required<Pick<HistoryRange, 'last'>> & { from: number; to: number } & HistoryRange,
): Promise<(Pick<WrittenAnswer, 'status' | 'text'> & { readonly last: number }) | undefined> {
  const parameters = new URLSearchParams({
    attrs: name,
    datasetId: dataset === '' ? '@none' : dataset,
    timerel: 'between',
    // Brokers differ in whether a range contains its bounds.
    timeAt: msToDateTime(Math.max(earliest, from - 1)),
    endTimeAt: msToDateTime(to),
    lastN: String(last),
    options: 'sysAttrs',
  })
  const get = (): ReturnType<BrokerPort['exchange']> =>
    broker.exchange({
      method: 'GET',
      path: `/ngsi-ld/v1/temporal/entities/${encodeURIComponent(id)}?${parameters}`,
      headers: { Accept: 'application/json' },
      signal,
    })
  let answer = await get()
  if ('status' in answer && answer.status === 400 && dataset === '') {
    // The broker may not know `datasetId`, and then counts instances of all datasets.
    parameters.delete('datasetId')
    parameters.set('lastN', String(limits.pluginSliceObservations.value))
    answer = await get()
  }
  const what = `the history of ${name} of ${id} at ${broker.address}`
  if ('failure' in answer) {
    const code = answer.failure === 'timeout' ? 'peer.timeout' : 'peer.unavailable'
    throw new GatewayError(code, `${what}: ${answer.reason}`)
  }
  if (answer.status === 404) return undefined
  if (answer.status !== 200 && answer.status !== 206)
    throw new GatewayError('peer.refused', `${what}: ${answer.status} ${answer.text.slice(0, 200)}`)
  return { status: answer.status, text: answer.text, last: Number(parameters.get('lastN')) }
}

/** All instances of the attribute that have a time, in ascending order of it. @throws peer.refused */
function instancesIn(text: string, { id, name }: StreamKey): (PastValue & Pick<StreamKey, 'dataset'>)[] {
  const entity = parsedJson(text) as JsonObject | undefined
  if (!isObject(entity)) throw new GatewayError('peer.refused', `the history of ${id} is not a JSON object`)
  return listOf(entity[name] ?? [])
    .filter((instance) => isObject(instance))
    .flatMap((instance) => {
      const time = offsetDateTimeToMs(textIn(instance, 'observedAt'))
      const value = contentOf(instance as unknown as AttributeInstance)
      if (time === undefined || value === undefined || value === ngsiLdNull) return []
      const committed = offsetDateTimeToMs(textIn(instance, 'createdAt') || textIn(instance, 'modifiedAt'))
      return [{ time, value, committed, dataset: textIn(instance, 'datasetId') }]
    })
    .sort((a, b) => a.time - b.time)
}

function textIn(instance: JsonObject, member: string): string {
  const text = instance[member]
  return typeof text === 'string' ? text : ''
}
