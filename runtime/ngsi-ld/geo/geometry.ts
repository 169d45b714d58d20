/**
 * Validates GeoJSON geometries for NGSI-LD (GS CIM 009, 4.7; RFC 7946, 3.1 and 4): six types, longitude
 * first, within ±180 degrees of longitude and ±90 of latitude (WGS 84 is the only reference system).
 * GeometryCollection is rejected.
 */
import type { Json } from '#contract/pipeline.ts'
import { isList, isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** Nesting depth of `coordinates`, and the minimum number of positions in the innermost list. */
interface Structure {
  readonly nesting: number
  readonly least: number
  /** Whether the innermost lists must end at their first position. */
  readonly closed: boolean
}

const structure = (nesting: number, least = 1, closed = false): Structure => ({ nesting, least, closed })

const structures: ReadonlyMap<string, Structure> = new Map([
  ['Point', structure(0)],
  ['MultiPoint', structure(1)],
  ['LineString', structure(1, 2)],
  ['MultiLineString', structure(2, 2)],
  ['Polygon', structure(2, 4, true)],
  ['MultiPolygon', structure(3, 4, true)],
])

/** Whether an object names a GeoJSON geometry type, well formed or not. */
export const isGeometry = (value: Json): boolean =>
  isObject(value) &&
  typeof value['type'] === 'string' &&
  (structures.has(value['type']) || value['type'] === 'GeometryCollection')

/**
 * A geometry, given as an object or as its JSON text.
 * @throws ngsi-ld.bad-request-data naming the invalid part.
 */
export function checkGeometry(value: Json, field: string): Json {
  const geometry = typeof value === 'string' ? decoded(value, field) : value
  if (!isObject(geometry)) throw badRequestData('must be a GeoJSON geometry', field)
  const { type, coordinates } = geometry
  const found = typeof type === 'string' ? structures.get(type) : undefined
  if (found === undefined) {
    throw badRequestData(`must be one of ${[...structures.keys()].join(', ')}`, `${field}.type`)
  }
  checkCoordinates(coordinates, found, found.nesting, `${field}.coordinates`)
  return geometry
}

function decoded(text: string, field: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    throw badRequestData('must be a GeoJSON geometry', field)
  }
}

function checkCoordinates(value: Json | undefined, found: Structure, nesting: number, field: string): void {
  if (!isList(value)) throw badRequestData('must be an array', field)
  if (nesting === 0) {
    const position = value.length >= 2 && value.length <= 4 && value.every((part) => Number.isFinite(part))
    if (!position)
      throw badRequestData('a position must be longitude, latitude and at most an altitude', field)
    if (Math.abs(value[0] as number) > 180 || Math.abs(value[1] as number) > 90)
      throw badRequestData('longitude must be within ±180 and latitude within ±90, in this order', field)
    return
  }
  for (const [index, item] of value.entries())
    checkCoordinates(item, found, nesting - 1, `${field}[${index}]`)
  if (nesting > 1) return
  if (value.length < found.least) throw badRequestData(`must have at least ${found.least} positions`, field)
  if (found.closed && !isSamePosition(value[0], value.at(-1))) {
    throw badRequestData('a ring must end at the position where it begins', field)
  }
}

const isSamePosition = (a: Json | undefined, b: Json | undefined): boolean =>
  JSON.stringify(a) === JSON.stringify(b)
