/**
 * Gathers the histories of a training, and tests the newest part of them before: whether there are enough
 * data, and a source that correlates.
 */
import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerPort } from '#contract'
import type { BrokerEntities } from '#plugins/virtual-sensors/candidates/broker-entities.ts'
import { readGoodHistory } from '#plugins/virtual-sensors/candidates/good-history.ts'
import type { SourceCandidate } from '#plugins/virtual-sensors/candidates/sensor-search.ts'
import { readHistory } from '#plugins/virtual-sensors/candidates/source-histories.ts'
import type { TrainingInput, ValueBounds } from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'
import { commonSlotsMin, testCorrelation } from '#plugins/virtual-sensors/sources/correlation-test.ts'
import {
  gridOf,
  heldIntervals,
  ownInterval,
  type Readings,
  slotValues,
} from '#plugins/virtual-sensors/sources/slots.ts'

export interface TrainingDataPorts {
  readonly broker: BrokerPort
  readonly entities: BrokerEntities
  readonly yieldIfDue: YieldIfDue
}

export interface TrainingDataRequest {
  readonly target: { readonly stream: string; readonly observation: string } | undefined
  readonly position: readonly number[]
  readonly candidates: readonly SourceCandidate[]
  readonly range: ValueBounds
  /** The newest values of each history that are read. */
  readonly last: number
  readonly signal: AbortSignal
}

/** The reason of a failure, as responses and the status show it. */
export const failures = {
  'no-source': 'no source within the distance',
  'not-enough-data': `not enough data: fewer than ${commonSlotsMin} common slots`,
  'no-correlating-source': 'no correlating source',
} as const

export const failed = (reason: string): GatewayError => new GatewayError('virtual-sensors.failed', reason)

/** @throws virtual-sensors.failed for a broken sensor without enough values; what `streamHistory` throws */
export async function readTrainingData(
  ports: TrainingDataPorts,
  { target, position, candidates, range, last, signal }: TrainingDataRequest,
): Promise<TrainingInput> {
  const own = target && (await readGoodHistory(ports, { ...target, last, signal }))
  if (own !== undefined && own.times.length < commonSlotsMin) throw failed(failures['not-enough-data'])
  const from = own?.times[0]
  const to = own?.times.at(-1)
  const span = from === undefined || to === undefined ? {} : { from, to: to + 1 }
  const sources: TrainingInput['sources'][number][] = []
  for (const { id, observation, distance, latitude, longitude } of candidates) {
    const readings = await readHistory(ports.broker, observation, { ...span, last, signal })
    if (readings.times.length > 0) sources.push({ id, distance, latitude, longitude, ...readings })
  }
  if (sources.length === 0) throw failed(failures['not-enough-data'])
  const [longitude, latitude] = position as [number, number]
  const intervals = (own === undefined ? sources : [own]).flatMap(({ times }) => ownInterval(times) ?? [])
  const slotMs = Math.max(1, median(intervals) ?? 1)
  return { target: { latitude, longitude, ...own }, sources, slotMs, range }
}

/** @throws virtual-sensors.failed unless the histories are enough, and a source correlates */
export async function testTrainingData(
  { target, sources, slotMs }: TrainingInput,
  yieldIfDue: YieldIfDue,
): Promise<void> {
  const { times, values } = target
  if (times === undefined || values === undefined) return
  const readings: Readings = { times, values }
  const grid = gridOf(readings, slotMs, limits.virtualTestedValues.value)
  if (grid === undefined) throw failed(failures['not-enough-data'])
  const targetValues = slotValues(readings, grid)
  let hasSlots = false
  for (const source of sources) {
    await yieldIfDue()
    const heldMs = heldIntervals * (ownInterval(source.times) ?? slotMs)
    const test = testCorrelation(targetValues, slotValues(source, grid, heldMs), sources.length)
    if (test.isCorrelated) return
    hasSlots ||= test.commonSlots >= commonSlotsMin
  }
  throw failed(failures[hasSlots ? 'no-correlating-source' : 'not-enough-data'])
}

const median = (numbers: readonly number[]): number | undefined =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1]
