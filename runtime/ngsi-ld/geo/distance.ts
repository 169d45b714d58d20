/**
 * Distances in metres: great circles on a sphere of the mean radius, within 0.6 % of the ellipsoid. A
 * position beyond 180 degrees of longitude or 90 of latitude is infinitely far from everything. The nearest
 * point of an edge is computed in a plane around the position, which is accurate for short edges.
 */
import {
  along,
  type Box,
  edgesOf,
  type Figure,
  type GeoPosition,
  intersects,
  nearestAlong,
  verticesOf,
} from './figure.ts'

/** Mean radius of the Earth (IUGG). */
export const earthRadiusMeters = 6_371_008.8

const radians = Math.PI / 180

/** Great-circle distance (haversine) in metres. */
export function distanceMeters(a: GeoPosition, b: GeoPosition): number {
  if (!isOnGlobe(a) || !isOnGlobe(b)) return Number.POSITIVE_INFINITY
  const latitudes = Math.sin(((b[1]! - a[1]!) * radians) / 2)
  const longitudes = Math.sin(((b[0]! - a[0]!) * radians) / 2)
  const square = latitudes ** 2 + Math.cos(a[1]! * radians) * Math.cos(b[1]! * radians) * longitudes ** 2
  return 2 * earthRadiusMeters * Math.asin(Math.min(1, Math.sqrt(square)))
}

/**
 * Returns a function that computes haversines of the angles from one position to others on the globe, to
 * compare with `haversineOf`. That is half the work of computing metres. NaN if `from` is not on the globe.
 */
export function haversinesFrom(from: GeoPosition): (longitude: number, latitude: number) => number {
  const [longitude0, latitude0] = isOnGlobe(from) ? [from[0]! * radians, from[1]! * radians] : [NaN, NaN]
  const cosine = Math.cos(latitude0)
  return (longitude, latitude) => {
    const latitudes = Math.sin((latitude * radians - latitude0) / 2)
    const longitudes = Math.sin((longitude * radians - longitude0) / 2)
    return latitudes * latitudes + cosine * Math.cos(latitude * radians) * longitudes * longitudes
  }
}

/**
 * The haversine of a distance's angle: -1 for a negative distance, infinite if nothing on the globe is
 * farther away.
 */
export function haversineOf(meters: number): number {
  const angle = meters / earthRadiusMeters
  return angle < 0 ? -1 : angle >= Math.PI ? Infinity : Math.sin(angle / 2) ** 2
}

/** True within ±180 degrees of longitude and ±90 of latitude. */
export function isOnGlobe(position: GeoPosition): boolean {
  return Math.abs(position[0]!) <= 180 && Math.abs(position[1]!) <= 90
}

/** Metres between the nearest points of two figures; 0 if they intersect. */
export function figureDistanceMeters(a: Figure, b: Figure): number {
  if (isOnePoint(a) && isOnePoint(b)) return distanceMeters(a.points[0]!, b.points[0]!)
  if (intersects(a, b)) return 0
  return Math.min(nearestVertexMeters(a, b), nearestVertexMeters(b, a))
}

function isOnePoint(figure: Figure): boolean {
  return figure.points.length === 1 && figure.lines.length === 0 && figure.polygons.length === 0
}

function nearestVertexMeters(from: Figure, to: Figure): number {
  const edges = edgesOf(to)
  let least = Number.POSITIVE_INFINITY
  for (const vertex of verticesOf(from)) {
    for (const point of to.points) least = Math.min(least, distanceMeters(vertex, point))
    for (const edge of edges) least = Math.min(least, distanceMeters(vertex, nearestOnEdge(vertex, edge)))
  }
  return least
}

function nearestOnEdge(vertex: GeoPosition, edge: readonly [GeoPosition, GeoPosition]): GeoPosition {
  const scale = Math.cos(vertex[1]! * radians)
  // Shifts longitudes to those around the vertex, so that an edge across the antimeridian is placed
  // correctly.
  const origin = vertex[0]! + Math.round((edge[0][0]! - vertex[0]!) / 360) * 360
  const flat = ([x, y]: GeoPosition): GeoPosition => [(x! - origin) * scale, y! - vertex[1]!]
  return along(edge, nearestAlong([flat(edge[0]), flat(edge[1])], [0, 0]))
}

/** Lower and upper bound in metres of the distances from a position to all positions of a box. */
export function distanceBounds(
  from: GeoPosition,
  [west, south, east, north]: Box,
): readonly [least: number, most: number] {
  if (!(west >= -180 && east <= 180 && south >= -90 && north <= 90)) return [0, Number.POSITIVE_INFINITY]
  const middle = distanceMeters(from, [(west + east) / 2, (south + north) / 2])
  // The path from the middle to any point of the box along a meridian, then a parallel, is never longer than
  // this.
  const reach = ((east - west + north - south) / 2) * radians * earthRadiusMeters + roundingMeters
  return [middle - reach, middle + reach]
}

/** Rounding errors of distanceMeters stay below this everywhere, also between antipodes. */
const roundingMeters = 0.2

/**
 * Boxes that together contain everything within `meters` of a box: two at the antimeridian, all longitudes at
 * a pole. Undefined if that is the whole globe.
 */
export function boxesWithin(meters: number, [west, south, east, north]: Box): readonly Box[] | undefined {
  const angle = meters / earthRadiusMeters
  if (angle >= Math.PI) return undefined
  const slack = 1e-7
  const reach = angle / radians + slack
  const [low, high] = [south - reach, north + reach]
  const steepest = Math.cos(Math.max(Math.abs(south), Math.abs(north)) * radians)
  const width = Math.asin(Math.min(1, Math.sin(angle) / steepest)) / radians + slack
  const [left, right] = [west - width, east + width]
  if (low <= -90 || high >= 90 || right - left >= 360)
    return [[-180, Math.max(low, -90), 180, Math.min(high, 90)]]
  if (left < -180)
    return [
      [-180, low, right, high],
      [left + 360, low, 180, high],
    ]
  if (right > 180)
    return [
      [left, low, 180, high],
      [-180, low, right - 360, high],
    ]
  return [[left, low, right, high]]
}
