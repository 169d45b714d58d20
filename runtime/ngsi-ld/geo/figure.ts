/**
 * Splits a GeoJSON geometry into points, lines and polygons, and computes spatial relations in the plane of
 * longitude and latitude. A figure includes its boundary; positions closer than a tenth of a millimetre
 * touch. The plane has no great circles and does not wrap at the antimeridian.
 */
import type { Json } from '#contract/pipeline.ts'
import { isObject } from '#ngsi-ld/values/json.ts'

/** Longitude, latitude, and an altitude that is ignored. */
export type GeoPosition = readonly number[]
export type Line = readonly GeoPosition[]
/** West, south, east, north in degrees, in the order of a GeoJSON bbox. */
export type Box = readonly [west: number, south: number, east: number, north: number]

export interface Figure {
  readonly points: readonly GeoPosition[]
  readonly lines: readonly Line[]
  /** Each is an outer ring and its holes; all rings are closed. */
  readonly polygons: readonly (readonly Line[])[]
  readonly box: Box
}

type Edge = readonly [from: GeoPosition, to: GeoPosition]

/** In degrees: positions closer than this are equal. */
export const touchDegrees = 1e-9

/** The figure of a geometry that `checkGeometry` accepted; undefined if the type is not a geometry type. */
export function figureOf(geometry: Json | undefined): Figure | undefined {
  if (!isObject(geometry)) return undefined
  const { coordinates } = geometry
  const figure = (parts: Partial<Figure>): Figure | undefined => {
    const whole = { points: [], lines: [], polygons: [], ...parts }
    const box = boxAround(verticesOf(whole))
    return box.every(Number.isFinite) ? { ...whole, box } : undefined
  }
  switch (geometry['type']) {
    case 'Point':
      return figure({ points: [coordinates as Json as GeoPosition] })
    case 'MultiPoint':
      return figure({ points: coordinates as Json as Line })
    case 'LineString':
      return figure({ lines: [coordinates as Json as Line] })
    case 'MultiLineString':
      return figure({ lines: coordinates as Json as Line[] })
    case 'Polygon':
      return figure({ polygons: [coordinates as Json as Line[]] })
    case 'MultiPolygon':
      return figure({ polygons: coordinates as Json as Line[][] })
    default:
      return undefined
  }
}

/** A box as a figure. */
export function figureOfBox(box: Box): Figure {
  const [west, south, east, north] = box
  const ring: Line = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ]
  return { points: [], lines: [], polygons: [[ring]], box }
}

type Parts = Pick<Figure, 'points' | 'lines' | 'polygons'>

export function verticesOf(figure: Parts): readonly GeoPosition[] {
  return [...figure.points, ...figure.lines.flat(), ...figure.polygons.flat(2)]
}

export function edgesOf(figure: Parts): readonly Edge[] {
  return [...figure.lines, ...figure.polygons.flat()].flatMap(edgesOfLine)
}

function edgesOfLine(line: Line): readonly Edge[] {
  return line.slice(1).map((to, index) => [line[index]!, to] as const)
}

function boxAround(positions: readonly GeoPosition[]): Box {
  let west = Infinity
  let south = Infinity
  let east = -Infinity
  let north = -Infinity
  for (const [x, y] of positions as readonly [number, number][]) {
    if (x < west) west = x
    if (x > east) east = x
    if (y < south) south = y
    if (y > north) north = y
  }
  return [west, south, east, north]
}

/** True if the boxes share a position. */
export function boxesTouch(a: Box, b: Box): boolean {
  return a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3]
}

// ---- Relations

/** True if the figures share a position. */
export function intersects(a: Figure, b: Figure): boolean {
  if (!boxesTouch(widened(a.box), b.box)) return false
  // Fast path for points, by far the most frequent figure: test whether the other figure contains them.
  if (isOfPoints(b)) return b.points.some((point) => holds(a, point))
  if (isOfPoints(a)) return a.points.some((point) => holds(b, point))
  if (verticesOf(a).some((vertex) => holds(b, vertex)) || verticesOf(b).some((vertex) => holds(a, vertex)))
    return true
  const edges = edgesOf(b)
  return edgesOf(a).some((edge) => edges.some((other) => crossings(edge, other).length > 0))
}

const isOfPoints = ({ lines, polygons }: Figure): boolean => lines.length === 0 && polygons.length === 0

/** Every position of b belongs to a. Polygons of a that cover one polygon of b only together do not count. */
export function covers(a: Figure, b: Figure): boolean {
  if (!isBoxWithin(b.box, widened(a.box))) return false
  if (!verticesOf(b).every((vertex) => holds(a, vertex))) return false
  if (!middlesOf(edgesOf(b), edgesOf(a)).every((middle) => holds(a, middle))) return false
  return b.polygons.every((polygon) => {
    if (!holdsInPolygon(a, interiorPosition(polygon))) return false
    const holes = a.polygons.flatMap((other) => other.slice(1))
    return !holes.some((hole) => {
      const middle = interiorPosition([hole])
      return side(polygon, middle) === 'inside' && !holdsInPolygon(a, middle)
    })
  })
}

/** True if both have the same dimension, their interiors intersect, and neither covers the other. */
export function overlaps(a: Figure, b: Figure): boolean {
  if (dimensionOf(a) !== dimensionOf(b) || !intersects(a, b) || covers(a, b) || covers(b, a)) return false
  if (dimensionOf(a) === 0) return true
  const shares = (one: Figure, other: Figure): boolean =>
    middlesOf(edgesOf(one), edgesOf(other)).some((middle) =>
      dimensionOf(other) === 1
        ? holds(other, middle)
        : other.polygons.some((polygon) => side(polygon, middle) === 'inside'),
    )
  return shares(a, b) || shares(b, a)
}

function dimensionOf(figure: Figure): number {
  return figure.polygons.length > 0 ? 2 : figure.lines.length > 0 ? 1 : 0
}

/** Whether a position belongs to a figure. */
export function holds(figure: Figure, position: GeoPosition): boolean {
  return (
    figure.points.some((point) => isSame(point, position)) ||
    figure.lines.some((line) => edgesOfLine(line).some((edge) => isOnEdge(edge, position))) ||
    holdsInPolygon(figure, position)
  )
}

function holdsInPolygon(figure: Figure, position: GeoPosition): boolean {
  return figure.polygons.some((polygon) => side(polygon, position) !== 'outside')
}

/** The side of the boundary on which a position lies; a hole is outside. */
function side(polygon: readonly Line[], [x, y]: GeoPosition): 'inside' | 'boundary' | 'outside' {
  let inside = false
  for (const ring of polygon) {
    for (let index = 1; index < ring.length; index++) {
      const from = ring[index - 1]!
      const to = ring[index]!
      // Most edges lie above or below the position, so they neither touch nor cross its horizontal ray.
      if (y! + touchDegrees < Math.min(from[1]!, to[1]!) || y! - touchDegrees > Math.max(from[1]!, to[1]!))
        continue
      if (isOnEdge([from, to], [x!, y!])) return 'boundary'
      const spans = from[1]! > y! !== to[1]! > y!
      if (spans && x! < ((to[0]! - from[0]!) * (y! - from[1]!)) / (to[1]! - from[1]!) + from[0]!)
        inside = !inside
    }
  }
  return inside ? 'inside' : 'outside'
}

/**
 * A position strictly within a polygon: the middle of its widest section on a horizontal line between two
 * vertices.
 */
function interiorPosition(polygon: readonly Line[]): GeoPosition {
  const heights = [...new Set(polygon.flat().map((position) => position[1]!))].sort((a, b) => a - b)
  let best: { width: number; position: GeoPosition } = { width: -1, position: polygon[0]![0]! }
  for (let index = 1; index < heights.length; index++) {
    const y = (heights[index - 1]! + heights[index]!) / 2
    const stops = polygon
      .flatMap(edgesOfLine)
      .filter(([from, to]) => from[1]! > y !== to[1]! > y)
      .map(([from, to]) => ((to[0]! - from[0]!) * (y - from[1]!)) / (to[1]! - from[1]!) + from[0]!)
      .sort((a, b) => a - b)
    for (let stop = 0; stop + 1 < stops.length; stop += 2) {
      const width = stops[stop + 1]! - stops[stop]!
      if (width > best.width) best = { width, position: [(stops[stop]! + stops[stop + 1]!) / 2, y] }
    }
  }
  return best.position
}

/** Splits the edges at the crossings with the other edges and returns the middle of each section. */
function middlesOf(edges: readonly Edge[], others: readonly Edge[]): readonly GeoPosition[] {
  return edges.flatMap((edge) => {
    const cuts = [0, 1, ...others.flatMap((other) => crossings(edge, other))].sort((a, b) => a - b)
    const middles: GeoPosition[] = []
    for (let index = 1; index < cuts.length; index++) {
      const [from, to] = [cuts[index - 1]!, cuts[index]!]
      if (to > from) middles.push(along(edge, (from + to) / 2))
    }
    return middles
  })
}

/**
 * Positions along `edge` (0 to 1) at which it meets the other edge; the ends of the common section if both
 * are collinear.
 */
function crossings(edge: Edge, other: Edge): readonly number[] {
  const [[px, py], [ex, ey]] = edge as readonly [readonly [number, number], readonly [number, number]]
  const [[qx, qy], [fx, fy]] = other as readonly [readonly [number, number], readonly [number, number]]
  const reach = touchDegrees
  if (Math.max(px, ex) + reach < Math.min(qx, fx) || Math.max(qx, fx) + reach < Math.min(px, ex)) return []
  if (Math.max(py, ey) + reach < Math.min(qy, fy) || Math.max(qy, fy) + reach < Math.min(py, ey)) return []
  const [rx, ry, sx, sy] = [ex - px, ey - py, fx - qx, fy - qy]
  const turn = rx * sy - ry * sx
  const found: number[] = []
  if (turn !== 0) {
    const here = ((qx - px) * sy - (qy - py) * sx) / turn
    const there = ((qx - px) * ry - (qy - py) * rx) / turn
    if (here >= 0 && here <= 1 && there >= 0 && there <= 1) found.push(here)
  }
  for (const end of other) if (isOnEdge(edge, end)) found.push(nearestAlong(edge, end))
  for (const [index, end] of edge.entries()) if (isOnEdge(other, end)) found.push(index)
  return found
}

function isOnEdge(edge: Edge, position: GeoPosition): boolean {
  const [[px, py], [ex, ey]] = edge as readonly [readonly [number, number], readonly [number, number]]
  const [x, y] = position as readonly [number, number]
  const reach = touchDegrees
  if (x + reach < Math.min(px, ex) || x - reach > Math.max(px, ex)) return false
  if (y + reach < Math.min(py, ey) || y - reach > Math.max(py, ey)) return false
  return isSame(along(edge, nearestAlong(edge, position)), position)
}

/** The position along an edge (0 to 1) nearest to a given position. */
export function nearestAlong([from, to]: Edge, position: GeoPosition): number {
  const [dx, dy] = [to[0]! - from[0]!, to[1]! - from[1]!]
  const square = dx * dx + dy * dy
  if (square === 0) return 0
  const place = ((position[0]! - from[0]!) * dx + (position[1]! - from[1]!) * dy) / square
  return Math.min(1, Math.max(0, place))
}

export function along([from, to]: Edge, place: number): GeoPosition {
  return [from[0]! + (to[0]! - from[0]!) * place, from[1]! + (to[1]! - from[1]!) * place]
}

function isSame(a: GeoPosition, b: GeoPosition): boolean {
  return Math.abs(a[0]! - b[0]!) <= touchDegrees && Math.abs(a[1]! - b[1]!) <= touchDegrees
}

function widened([west, south, east, north]: Box): Box {
  return [west - touchDegrees, south - touchDegrees, east + touchDegrees, north + touchDegrees]
}

/** True if the outer box contains the inner box. */
export function isBoxWithin(inner: Box, outer: Box): boolean {
  return inner[0] >= outer[0] && inner[1] >= outer[1] && inner[2] <= outer[2] && inner[3] <= outer[3]
}
