/**
 * Closes polygon rings that do not end where they begin (RFC 7946, 3.1.6), because clients of the platform
 * omit the last position. Everything else is returned unchanged, including values that are not geometries.
 */
import type { Json } from '#contract/pipeline.ts'
import { isList, isObject, parsedJson, sameJson } from '#ngsi-ld/values/json.ts'

const nestings: ReadonlyMap<unknown, number> = new Map([
  ['Polygon', 1],
  ['MultiPolygon', 2],
])

/** A body in which the rings of all geometries and geo-queries are closed. */
export function withClosedRings(json: Json): Json {
  if (isList(json)) return json.map(withClosedRings)
  if (!isObject(json)) return json
  const nesting = nestings.get(json['type']) ?? nestings.get(json['geometry'])
  const isGeo = json['type'] === 'GeoProperty'
  const entries = Object.entries(json).map(([name, value]): [string, Json] => [
    name,
    nesting !== undefined && name === 'coordinates'
      ? closed(value, nesting)
      : isGeo && typeof value === 'string'
        ? encoded(value)
        : withClosedRings(value),
  ])
  return Object.fromEntries(entries)
}

/** The text of a geometry with its rings closed (GS CIM 009, 4.7.1); any other text unchanged. */
function encoded(text: string): Json {
  const parsed = parsedJson(text)
  return isObject(parsed) ? JSON.stringify(withClosedRings(parsed)) : text
}

/** Query parameters in which the rings of the geometry are closed. */
export function withClosedQueryRings(parameters: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const nesting = nestings.get(parameters.get('geometry'))
  const coordinates = parameters.get('coordinates')
  if (nesting === undefined || coordinates === undefined) return parameters
  return new Map([...parameters, ['coordinates', closed(coordinates, nesting) as string]])
}

/** Coordinates may be JSON text, as in query parameters. */
function closed(coordinates: Json, nesting: number): Json {
  if (typeof coordinates === 'string') {
    const parsed = parsedJson(coordinates)
    return parsed === undefined ? coordinates : JSON.stringify(closed(parsed, nesting))
  }
  if (!isList(coordinates)) return coordinates
  if (nesting > 0) return coordinates.map((part) => closed(part, nesting - 1))
  const isOpen =
    coordinates.length > 2 && isList(coordinates[0]) && !sameJson(coordinates[0], coordinates.at(-1))
  return isOpen ? [...coordinates, coordinates[0]!] : coordinates
}
