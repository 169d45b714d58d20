/** Takes entities of sources, as a broker reports them, into the readings. */

import { limits } from '#base/limits/limits.ts'
import { numberOf, timedResult } from '#client/streams/stream-entities.ts'
import type { BrokerPort } from '#contract'
import { iotStream } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { isFaultyStream } from '#plugins/virtual-sensors/candidates/sensor-search.ts'
import { readHistory } from '#plugins/virtual-sensors/candidates/source-histories.ts'
import { lookbackMs } from '#plugins/virtual-sensors/families/prediction.ts'
import type { SourceReadings } from '#plugins/virtual-sensors/state/source-readings.ts'
import { sourcesOf, type VirtualSensor } from '#plugins/virtual-sensors/state/virtual-sensor.ts'

/** Other entities are ignored. */
export function takeEntity(readings: SourceReadings, entity: Entity): void {
  if (!readings.has(entity.id)) return
  const types = listOf(entity.type)
  if (types.includes(iotStream.IotStream)) readings.setFaulty(entity.id, isFaultyStream(entity))
  if (!types.includes(iotStream.StreamObservation)) return
  const result = timedResult(entity)
  const value = numberOf(result?.value)
  if (result !== undefined && value !== undefined) readings.observe(entity.id, { time: result.time, value })
}

/** How far back the values of a virtual sensor's sources are kept. */
export const lookbackOf = ({ model }: VirtualSensor): number => (model === undefined ? 0 : lookbackMs(model))

/** Reads the values of the last time that a prediction looks back for. @throws what `streamHistory` throws */
export async function readLatest(
  { broker, readings, now }: { broker: BrokerPort; readings: SourceReadings; now: () => number },
  sensor: VirtualSensor,
): Promise<void> {
  const from = now() - lookbackOf(sensor)
  for (const { observation } of sourcesOf(sensor)) {
    const last = limits.virtualReadingsMax.value
    const { times, values } = await readHistory(broker, observation, {
      from,
      last,
      signal: sensor.work.signal,
    })
    for (const [i, time] of times.entries()) readings.observe(observation, { time, value: values[i]! })
  }
}
