/**
 * Finds the sensors that a virtual sensor may take values from, nearest first: within the distance, and of
 * the same property label if that is wanted. Virtual sensors, sensors that are replaced, and streams in
 * state fault are left out.
 */
import { limits } from '#base/limits/limits.ts'
import { linksOf, placeOf, propertyValue } from '#client/streams/stream-entities.ts'
import { faultTerms, iotStream, rdfsLabel, sosa } from '#contract/vocabulary.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import { own } from '#ngsi-ld/values/json.ts'
import { isVirtual } from '#plugins/virtual-sensors/entities/entity-names.ts'
import type { SourceChoices } from '#plugins/virtual-sensors/requests/parameters.ts'
import type { BrokerEntities } from './broker-entities.ts'

export interface SourceCandidate {
  /** Id of its Sensor. */
  readonly id: string
  readonly observation: string
  readonly stream: string
  /** Metres. */
  readonly distance: number
  readonly longitude: number
  readonly latitude: number
}

export interface Search
  extends Pick<SourceChoices, 'maxDistance' | 'onlySameObservations' | 'limitSourceSensors'> {
  readonly position: readonly number[]
  readonly propertyId: string
  readonly label: string | undefined
  /** Sensors that are replaced, the broken one among them. */
  readonly broken: ReadonlySet<string>
}

/** The label of an observed property, as it is compared. */
export function labelOf(property: Entity | undefined): string | undefined {
  const text = property && propertyValue(property, rdfsLabel)
  return typeof text === 'string' && text.trim() !== '' && text !== 'NA' ? text : undefined
}

/** At most `limitSourceSensors` candidates, nearest first. */
export async function findCandidates(
  entities: BrokerEntities,
  search: Search,
): Promise<readonly SourceCandidate[]> {
  const { broken, position, maxDistance, limitSourceSensors } = search
  const [longitude, latitude] = position as [number, number]
  const properties = search.onlySameObservations ? await sameProperties(entities, search) : undefined
  const near = await entities.matching(
    {
      type: sosa.Sensor,
      georel: `near;maxDistance==${maxDistance}`,
      geometry: 'Point',
      coordinates: `[${longitude},${latitude}]`,
    },
    limits.virtualCandidatesMax.value,
  )
  const placed = near.flatMap((sensor) => {
    const place = placeOf(sensor)
    if (place === undefined || broken.has(sensor.id) || isVirtual(sensor.id)) return []
    const [property = ''] = linksOf(sensor, sosa.observes)
    if (properties !== undefined && !properties.has(property)) return []
    const distance = distanceMeters([longitude, latitude], [...place])
    return distance <= maxDistance ? [{ sensor, distance, longitude: place[0], latitude: place[1] }] : []
  })
  placed.sort((a, b) => a.distance - b.distance || (a.sensor.id < b.sensor.id ? -1 : 1))
  const found: SourceCandidate[] = []
  for (let at = 0; at < placed.length && found.length < limitSourceSensors; at += limitSourceSensors) {
    const some = placed.slice(at, at + limitSourceSensors)
    const streams = await streamsOf(
      entities,
      some.map(({ sensor }) => sensor),
    )
    for (const { sensor, ...rest } of some) {
      const stream = streams.get(sensor.id)
      if (stream !== undefined && !stream.isFaulty)
        found.push({ id: sensor.id, observation: stream.observation, stream: stream.id, ...rest })
    }
  }
  return found.slice(0, limitSourceSensors)
}

interface SensorStream {
  readonly id: string
  readonly observation: string
  readonly isFaulty: boolean
  /** The unit of the present result. */
  readonly unitCode: string | undefined
}

/** The stream and the observation entity of each sensor. Sensors without one are left out. */
export async function streamsOf(
  entities: BrokerEntities,
  sensors: readonly Entity[],
): Promise<ReadonlyMap<string, SensorStream>> {
  const observationIds = sensors.flatMap((sensor) => linksOf(sensor, sosa.madeObservation).slice(0, 1))
  const observations = await entities.byId(observationIds, iotStream.StreamObservation)
  const streamIds = [...observations.values()].flatMap((one) => linksOf(one, iotStream.belongsTo).slice(0, 1))
  const streams = await entities.byId(streamIds, iotStream.IotStream)
  return new Map(
    sensors.flatMap((sensor) => {
      const observation = observations.get(linksOf(sensor, sosa.madeObservation)[0] ?? '')
      const id = observation && linksOf(observation, iotStream.belongsTo)[0]
      if (observation === undefined || id === undefined) return []
      const stream = streams.get(id)
      const isFaulty = stream !== undefined && isFaultyStream(stream)
      return [
        [
          sensor.id,
          { id, observation: observation.id, isFaulty, unitCode: unitCodeOf(observation) },
        ] as const,
      ]
    }),
  )
}

function unitCodeOf(observation: Entity): string | undefined {
  const [result] = instancesOf(observation, sosa.hasSimpleResult)
  const unit = result && own(result, 'unitCode')
  return typeof unit === 'string' ? unit : undefined
}

/** Whether the state of a stream is fault. */
export const isFaultyStream = (stream: Entity): boolean => propertyValue(stream, faultTerms.state) === 'fault'

/** Ids of the observable properties with the same label; without a label only the property itself. */
async function sameProperties(
  entities: BrokerEntities,
  { propertyId, label }: Search,
): Promise<ReadonlySet<string>> {
  if (label === undefined) return new Set([propertyId])
  const lower = label.toLowerCase()
  const capitalized = lower.slice(0, 1).toUpperCase() + lower.slice(1)
  const spellings = [...new Set([label, lower, capitalized, label.toUpperCase()])]
  const q = spellings.map((one) => `${rdfsLabel}=="${one.replaceAll(/["\\]/g, '')}"`).join('|')
  const found = await entities.matching(
    { type: sosa.ObservableProperty, q },
    limits.virtualCandidatesMax.value,
  )
  return new Set([propertyId, ...found.map(({ id }) => id)])
}
