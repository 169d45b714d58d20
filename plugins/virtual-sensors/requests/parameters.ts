/**
 * Parameters of the creator's requests: members of a JSON body, or of the query, which has only text. Pure.
 * Members that are not known are ignored.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { isList, isObject, type JsonObject, own, parsedJson } from '#ngsi-ld/values/json.ts'
import { isUri } from '#ngsi-ld/values/names.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** How sources are chosen, and how often is predicted. */
export interface SourceChoices {
  /** Metres. */
  readonly maxDistance: number
  readonly onlySameObservations: boolean
  readonly limitSourceSensors: number
  /** Seconds. */
  readonly updateInterval: number
}

export interface Replacement extends SourceChoices {
  readonly sensorId: string
}

/** A virtual sensor at a place without a sensor. */
export interface Deployment extends SourceChoices {
  /** GeoJSON order: longitude, latitude, and the altitude in metres if it is known. */
  readonly position: readonly [longitude: number, latitude: number, ...altitude: number[]]
  readonly propertyId: string
}

/**
 * Members of the body, over those of the query.
 * @throws ngsi-ld.invalid-request for a body that is not a JSON object
 */
export function givenIn(query: URLSearchParams, body: string): JsonObject {
  const given: JsonObject = Object.fromEntries(
    [...new Set(query.keys())].map((name) => {
      const values = query.getAll(name)
      return [name, values.length === 1 ? values[0]! : values] as const
    }),
  )
  if (body.trim() === '') return given
  const json = parsedJson(body)
  if (!isObject(json)) throw invalidRequest('the body is not a JSON object')
  return { ...given, ...json }
}

/** @throws ngsi-ld.bad-request-data */
export const replacementRequest = (given: JsonObject): Replacement => ({
  sensorId: idIn(given, 'sensorID'),
  ...choicesOf(given),
})

/** @throws ngsi-ld.bad-request-data */
export const deploymentOf = (given: JsonObject): Deployment => ({
  position: positionIn(given),
  propertyId: idIn(given, 'propertyID'),
  ...choicesOf(given),
})

/** @throws ngsi-ld.bad-request-data */
export const sensorIdOf = (given: JsonObject): string => idIn(given, 'sensorID')

function choicesOf(given: JsonObject): SourceChoices {
  const sourcesMax = limits.virtualSourcesMax.value
  const metersMax = limits.virtualMetersMax.value
  return {
    maxDistance: numberIn(given, { name: 'maxDistance', least: 1, most: metersMax, byDefault: 20_000 }),
    onlySameObservations: flagIn(given, 'onlySameObservations', true),
    limitSourceSensors: wholeNumberIn(given, {
      name: 'limitSourceSensors',
      least: 1,
      most: sourcesMax,
      byDefault: 8,
    }),
    updateInterval: numberIn(given, { name: 'updateInterval', least: 1, most: 86_400, byDefault: 300 }),
  }
}

function idIn(given: JsonObject, name: string): string {
  const id = own(given, name)
  if (id === undefined || id === '') throw badRequestData('is required', name)
  if (typeof id !== 'string' || !isUri(id)) throw badRequestData('must be the id of an entity', name)
  return id
}

interface NumberRules {
  readonly name: string
  readonly least: number
  readonly most: number
  readonly byDefault: number
}

function numberIn(given: JsonObject, { name, least, most, byDefault }: NumberRules): number {
  const json = own(given, name) ?? undefined
  if (json === undefined) return byDefault
  const number = numberOf(json)
  if (number !== undefined && number >= least && number <= most) return number
  throw badRequestData(`must be a number from ${least} to ${most}`, name)
}

function wholeNumberIn(given: JsonObject, rules: NumberRules): number {
  const number = numberIn(given, rules)
  if (Number.isInteger(number)) return number
  throw badRequestData(`must be a whole number from ${rules.least} to ${rules.most}`, rules.name)
}

/** A number, or a text of one. */
function numberOf(json: Json): number | undefined {
  if (typeof json === 'number') return json
  return typeof json === 'string' && /^-?\d{1,16}(\.\d{1,16})?$/.test(json.trim()) ? Number(json) : undefined
}

function flagIn(given: JsonObject, name: string, byDefault: boolean): boolean {
  const json = own(given, name) ?? undefined
  if (json === undefined) return byDefault
  const text = typeof json === 'string' ? json.toLowerCase() : JSON.stringify(json)
  if (text === 'true' || text === 'false') return text === 'true'
  throw badRequestData('must be true or false', name)
}

/** The parameter `location` is [latitude, longitude, altitude]; everything else has GeoJSON order. */
function positionIn(given: JsonObject): Deployment['position'] {
  const json = own(given, 'location')
  if (json === undefined) throw badRequestData('is required', 'location')
  const numbers = (listOfNumbers(json) ?? []).map(numberOf)
  const [latitude, longitude, altitude] = numbers
  if (
    (numbers.length !== 2 && numbers.length !== 3) ||
    numbers.includes(undefined) ||
    latitude === undefined ||
    longitude === undefined
  )
    throw badRequestData('must be [latitude, longitude, altitude], numbers', 'location')
  if (Math.abs(latitude) > 90) {
    const hint = Math.abs(longitude) <= 90 ? '; latitude and longitude seem to be swapped' : ''
    throw badRequestData(`latitude ${latitude} must be from -90 to 90${hint}`, 'location')
  }
  if (Math.abs(longitude) > 180)
    throw badRequestData(`longitude ${longitude} must be from -180 to 180`, 'location')
  return altitude === undefined ? [longitude, latitude] : [longitude, latitude, altitude]
}

/** A list, or in a query its text: as JSON, or separated by commas. */
function listOfNumbers(json: Json): readonly Json[] | undefined {
  if (isList(json)) return json
  if (typeof json !== 'string') return undefined
  return json.replace(/^\s*\[|\]\s*$/g, '').split(',')
}
