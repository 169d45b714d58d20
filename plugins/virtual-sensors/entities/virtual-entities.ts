/** The entities of a virtual sensor, and a predicted result, as NGSI-LD with canonical names. Pure. */
import { faultTerms, iotStream, notAvailable, qoi, rdfsLabel, sosa } from '#contract/vocabulary.ts'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import {
  artificiality,
  entityIds,
  predictionInterval,
  replaces,
  standardError,
  usedSensors,
} from './entity-names.ts'

export interface VirtualDescription {
  /** Id of the virtual sensor. */
  readonly id: string
  /** Id of the sensor that it replaces, if it replaces one. */
  readonly target: string | undefined
  readonly propertyId: string
  readonly label: string | undefined
  /** GeoJSON order. */
  readonly position: readonly number[]
  /** Seconds between two predictions. */
  readonly updateInterval: number
  /** Streams that values may come from. */
  readonly sourceStreams: readonly string[]
}

/** The Sensor. Its range and update interval are NA, as the platform specifies. */
export function sensorEntity({
  id,
  target,
  propertyId,
  position,
  updateInterval,
}: VirtualDescription): JsonObject {
  const ids = entityIds(id)
  return {
    id,
    type: sosa.Sensor,
    location: placeAt(position),
    [sosa.isHostedBy]: relationship(ids.platform),
    [sosa.observes]: relationship(propertyId),
    [sosa.madeObservation]: relationship(ids.observation),
    [qoi.min]: property(notAvailable),
    [qoi.max]: property(notAvailable),
    [qoi.updateinterval]: { ...property(notAvailable), [qoi.unit]: property(notAvailable) },
    [qoi.valuetype]: property(notAvailable),
    [predictionInterval]: { ...property(updateInterval), unitCode: 'SEC' },
    ...(target === undefined ? {} : { [replaces]: relationship(target) }),
  }
}

/** The Sensor as a response shows it. */
export const shownSensor = (description: VirtualDescription): JsonObject => ({
  ...sensorEntity(description),
  '@context': coreContext.reference,
})

/** All entities but the quality, which the analyser writes. */
export function virtualEntities(description: VirtualDescription): JsonObject[] {
  const { id, label, propertyId, position, sourceStreams } = description
  const ids = entityIds(id)
  const location = placeAt(position)
  return [
    {
      id: ids.platform,
      type: sosa.Platform,
      location,
      [sosa.hosts]: relationship(id),
      ...(label === undefined ? {} : { [rdfsLabel]: property(`virtual sensor: ${label}`) }),
    },
    sensorEntity(description),
    {
      id: ids.stream,
      type: iotStream.IotStream,
      location,
      [iotStream.generatedBy]: relationship(id),
      [iotStream.observes]: relationship(propertyId),
      [sosa.observes]: relationship(propertyId),
      [iotStream.derivedFrom]: sourceStreams.map((stream) => ({
        ...relationship(stream),
        datasetId: stream,
      })),
    },
    {
      id: ids.observation,
      type: iotStream.StreamObservation,
      [iotStream.belongsTo]: relationship(ids.stream),
      [sosa.madeBySensor]: relationship(id),
      [sosa.observedProperty]: relationship(propertyId),
    },
  ]
}

/** A prediction to publish. */
export interface PublishedPrediction {
  readonly value: number
  /** Standard error. */
  readonly error: number
  /** Ids of the sensors whose values it used. */
  readonly used: readonly string[]
  /** ms. */
  readonly at: number
  readonly unitCode: string | undefined
  /** The ONNX model that took part, with its hash. */
  readonly method?: string | undefined
}

/**
 * The observation entity with a predicted result. The error has two digits, and there is no sosa:resultTime,
 * so that most results differ in value and time alone. The broker stores those in a few bytes.
 */
export function predictedObservation(
  id: string,
  { value, error, used, at, unitCode, method }: PublishedPrediction,
): JsonObject {
  const decimals = Math.min(12, Math.max(0, 2 - Math.ceil(Math.log10(Math.max(error, 1e-10)))))
  return {
    id: entityIds(id).observation,
    type: iotStream.StreamObservation,
    [sosa.hasSimpleResult]: {
      ...property(Number(value.toFixed(decimals))),
      observedAt: msToDateTime(at),
      ...(unitCode === undefined ? {} : { unitCode }),
      [standardError]: property(Number(error.toPrecision(2))),
      [artificiality]: property(1),
      [usedSensors]: property(used),
      ...(method === undefined ? {} : { [faultTerms.method]: property(method) }),
    },
  }
}

const property = (value: string | number | readonly string[]): { type: string; value: typeof value } => ({
  type: 'Property',
  value,
})

const relationship = (object: string): JsonObject => ({ type: 'Relationship', object })

const placeAt = (position: readonly number[]): JsonObject => ({
  type: 'GeoProperty',
  value: { type: 'Point', coordinates: position },
})
