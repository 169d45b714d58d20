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
import { commonSlotsMin, testCorrelation } from '#plugins/virtual-sensors/sources/candidate-correlation.ts'
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
  /** Pause between two slices of a history. */
  readonly restMs?: number | undefined
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
  { target, position, candidates, range, ...reading }: TrainingDataRequest,
): Promise<TrainingInput> {
  const own = target && (await readGoodHistory(ports, { ...target, ...reading })).readings
  if (own !== undefined && own.times.length < commonSlotsMin) throw failed(failures['not-enough-data'])
  const span = own === undefined ? {} : spanOf(own)
  const sources: TrainingInput['sources'][number][] = []
  for (const { id, observation, distance, latitude, longitude } of candidates) {
    const readings = await readHistory(ports.broker, observation, { ...span, ...reading })
    if (readings.times.length > 0) sources.push({ id, distance, latitude, longitude, ...readings })
  }
  if (sources.length === 0) throw failed(failures['not-enough-data'])
  const [longitude, latitude] = position as [number, number]
  const intervals = (own === undefined ? sources : [own]).flatMap(({ times }) => ownInterval(times) ?? [])
  const slotMs = Math.max(1, median(intervals) ?? 1)
  return { target: { latitude, longitude, ...own }, sources, slotMs, range }
}

/**
 * Tests whether a candidate correlates with the broken sensor, nearest first. A response waits for this, so
 * the newest values are tested first, and more of them only if those do not show it.
 * @throws virtual-sensors.failed if none does, or the data are not enough
 */
export async function testCandidates(
  ports: TrainingDataPorts,
  request: Omit<TrainingDataRequest, 'last'>,
): Promise<void> {
  let failure: GatewayError | undefined
  for (const { value: last } of [limits.virtualFirstTestedValues, limits.virtualTestedValues]) {
    const tested = await testNewest(ports, { ...request, last })
    if (tested === 'correlates') return
    failure = tested.failure
    if (!tested.isPart) break
  }
  throw failure!
}

type Tested = 'correlates' | { readonly failure: GatewayError; readonly isPart: boolean }

async function testNewest(
  ports: TrainingDataPorts,
  { target, candidates, last, signal }: TrainingDataRequest,
): Promise<Tested> {
  const good = target && (await readGoodHistory(ports, { ...target, last, signal }))
  const own = good?.readings
  const slotMs = own && ownInterval(own.times)
  const grid = own && slotMs ? gridOf(own, slotMs, last) : undefined
  let hasSlots = false
  for (const { observation } of candidates) {
    await ports.yieldIfDue()
    const span = own === undefined ? {} : spanOf(own)
    const source = await readHistory(ports.broker, observation, { ...span, last, signal })
    if (own === undefined && source.times.length > 0) return 'correlates'
    if (own === undefined || grid === undefined) continue
    const heldMs = heldIntervals * (ownInterval(source.times) ?? grid.slotMs)
    const values = slotValues(source, grid, heldMs)
    const test = testCorrelation(slotValues(own, grid), values, candidates.length)
    if (test.isCorrelated) return 'correlates'
    hasSlots ||= test.commonSlots >= commonSlotsMin
  }
  return {
    failure: failed(failures[hasSlots ? 'no-correlating-source' : 'not-enough-data']),
    isPart: good?.isPart === true,
  }
}

const spanOf = ({ times }: Readings) => (times.length === 0 ? {} : { from: times[0], to: times.at(-1)! + 1 })

const median = (numbers: readonly number[]): number | undefined =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1]
