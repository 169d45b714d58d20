/** Names of a virtual sensor's entities, and IRIs that no other part of the product uses. Pure. */
import { createHash } from 'node:crypto'

export const artificiality = 'https://w3id.org/iot/qoi#artificiality'
const selvedge = 'urn:selvedge:ns:'
/** The broken sensor that a virtual sensor stands in for. */
export const replaces = `${selvedge}replaces`
/** Seconds between two predictions; qoi:updateinterval of a virtual sensor is NA. */
export const predictionInterval = `${selvedge}predictionInterval`
/** Standard error of a predicted result. */
export const standardError = `${selvedge}standardError`
/** Sensors whose values a prediction used. */
export const usedSensors = `${selvedge}usedSensors`

const suffix = ':VS'

export const isVirtual = (sensorId: string): boolean => sensorId.endsWith(suffix)

export interface EntityIds {
  readonly sensor: string
  readonly platform: string
  readonly stream: string
  readonly observation: string
  /** As the quality analyser names it. */
  readonly quality: string
}

/** @param sensor id of the virtual sensor, which ends with `:VS`. */
export function entityIds(sensor: string): EntityIds {
  const local = sensor.replace(/^urn:ngsi-ld:Sensor:/, '')
  const stream = `urn:ngsi-ld:IotStream:${local}`
  return {
    sensor,
    platform: `urn:ngsi-ld:Platform:${local}`,
    stream,
    observation: `urn:ngsi-ld:StreamObservation:${local}`,
    quality: `urn:ngsi-ld:QoI:${stream}`,
  }
}

/** The virtual sensor that replaces a sensor. */
export const replacementId = (sensor: string): string => `${sensor}${suffix}`

/** The virtual sensor of a property at a place; the same for the same request. */
export function deploymentId(propertyId: string, [longitude, latitude]: readonly number[]): string {
  const digest = createHash('sha256').update(`${propertyId} ${longitude} ${latitude}`).digest('hex')
  return `urn:ngsi-ld:Sensor:${digest.slice(0, 16)}${suffix}`
}
