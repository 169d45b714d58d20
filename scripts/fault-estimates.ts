/**
 * Estimates of a sensor's values from its neighbours, by the virtual sensors of the product. Each part of
 * the history is estimated by a model of the other part, so that the residuals are those of values that no
 * model has seen.
 */
import type { NeighbourEstimate } from '#plugins/faults/rules/observed.ts'
import { lookbackMs, predict } from '#plugins/virtual-sensors/families/prediction.ts'
import type { VirtualSensorModel } from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'
import { trainVirtualSensor } from '#plugins/virtual-sensors/families/virtual-sensor-training.ts'
import { neighboursOf, type SensorSet } from './sensor-sets.ts'

type Sensor = SensorSet['sensors'][number]
export type Estimates = readonly (NeighbourEstimate | undefined)[]

const hourMs = 3_600_000
/** Hourly air is compared over the whole city, traffic within 20 km. */
const cityMeters = 200_000

export function estimatesOf(set: SensorSet, target: Sensor, known: number): Estimates {
  const half = known >> 1
  const wide = set.slotMs < hourMs ? set : { ...set, radius: cityMeters }
  const modelOf = (from: number, to: number): VirtualSensorModel | undefined => {
    const outcome = trainVirtualSensor({
      target: { latitude: target.latitude, longitude: target.longitude, ...readings(set, target, from, to) },
      sources: neighboursOf(wide, target, known).map(({ sensor, distance }) => ({
        id: sensor.id,
        distance,
        latitude: sensor.latitude,
        longitude: sensor.longitude,
        ...readings(set, sensor, from, to),
      })),
      slotMs: set.slotMs,
    })
    return 'failure' in outcome ? undefined : outcome.model
  }
  const [early, late, whole] = [modelOf(0, half), modelOf(half, known), modelOf(0, known)]
  return Array.from(target.values, (_, slot) =>
    estimateAt(set, slot < half ? late : slot < known ? early : whole, slot),
  )
}

function readings(set: SensorSet, { values }: Sensor, from: number, to: number) {
  const slots = Array.from({ length: to - from }, (_, i) => from + i).filter(
    (slot) => !Number.isNaN(values[slot]!),
  )
  return {
    times: Float64Array.from(slots, (slot) => set.begin + slot * set.slotMs),
    values: Float64Array.from(slots, (slot) => values[slot]!),
  }
}

function estimateAt(
  set: SensorSet,
  model: VirtualSensorModel | undefined,
  slot: number,
): NeighbourEstimate | undefined {
  if (model === undefined) return undefined
  const back = Math.ceil(lookbackMs(model) / set.slotMs)
  const sources = model.sources.map((id) => set.sensors.find((sensor) => sensor.id === id)!)
  const latest = sources.map(({ values }) => {
    const found: { time: number; value: number }[] = []
    for (let at = slot; at >= Math.max(0, slot - back); at--)
      if (!Number.isNaN(values[at]!)) found.push({ time: set.begin + at * set.slotMs, value: values[at]! })
    return found.length === 0 ? undefined : { ...found[0]!, earlier: found.slice(1) }
  })
  const found = predict(model, latest, set.begin + slot * set.slotMs)
  if (found === undefined) return undefined
  const isVarying = sources.some(({ values }) => [1, 2, 3].some((i) => values[slot - i] !== values[slot]))
  return { value: found.value, error: found.error, isVarying, areAgreeing: true }
}
