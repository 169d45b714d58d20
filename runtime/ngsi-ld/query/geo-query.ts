/**
 * Geo-queries [NGSI-LD 4.10]: parsing, evaluation, and the boxes that an index searches for them. `near` is
 * measured on the globe, the other relations in the plane of longitude and latitude (see `figure.ts`).
 * `within` means that the reference geometry covers the entity's geometry, `contains` the reverse; boundaries
 * count.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import {
  boxesWithin,
  distanceBounds,
  figureDistanceMeters,
  haversineOf,
  haversinesFrom,
} from '#ngsi-ld/geo/distance.ts'
import {
  type Box,
  covers,
  type Figure,
  figureOf,
  figureOfBox,
  intersects,
  overlaps,
  touchDegrees,
  verticesOf,
} from '#ngsi-ld/geo/figure.ts'
import { checkGeometry } from '#ngsi-ld/geo/geometry.ts'
import { checkName } from '#ngsi-ld/values/names.ts'
import { badRequestData, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { createQueryBudget } from '#ngsi-ld/values/pattern.ts'

export type GeoRelation =
  | { readonly kind: 'near'; readonly maxDistance: number }
  | { readonly kind: 'near'; readonly minDistance: number }
  | { readonly kind: (typeof planarRelations)[number] }

/** Plain JSON. Distances are metres; `property` is a core-compacted name. */
export interface GeoQuery {
  readonly relation: GeoRelation
  readonly geometry: { readonly type: string; readonly coordinates: Json }
  readonly property: string
  /** The client named the property although it is the default, so responses must show it. */
  readonly isNamed?: true
}

/** The unparsed members: from URL parameters (texts) or from geoQ (coordinates may be an array). */
export interface GeoQueryInput {
  readonly georel?: Json | undefined
  readonly geometry?: Json | undefined
  readonly coordinates?: Json | undefined
  readonly geoproperty?: Json | undefined
}

/** The default property [NGSI-LD 4.7]. */
const usualProperty = 'location'

const planarRelations = ['within', 'contains', 'intersects', 'disjoint', 'equals', 'overlaps'] as const

/**
 * Parses a geo-query; undefined if none of its members is given.
 * @throws GatewayError ngsi-ld.bad-request-data naming the member, ngsi-ld.too-complex for too large
 * geometries.
 */
export function parseGeoQuery(input: GeoQueryInput, expand: (term: string) => string): GeoQuery | undefined {
  const { georel, geometry, coordinates, geoproperty } = input
  if ([georel, geometry, coordinates, geoproperty].every((member) => member === undefined)) return undefined
  if (typeof georel !== 'string') throw badRequestData('is required with geometry and coordinates', 'georel')
  if (typeof geometry !== 'string')
    throw badRequestData('is required with georel and coordinates', 'geometry')
  if (geoproperty !== undefined && (typeof geoproperty !== 'string' || geoproperty === '')) {
    throw badRequestData('must be the name of a GeoProperty', 'geoproperty')
  }
  const relation = parseRelation(georel)
  const reference = { type: geometry, coordinates: parseCoordinates(coordinates) }
  checkGeometry(reference, 'geometry')
  const vertices = verticesOf(figureOf(reference)!)
  if (vertices.length > limits.geometryPositionsMax.value) {
    throw tooComplex(`geometry: has more than ${limits.geometryPositionsMax.value} positions`)
  }
  const property =
    geoproperty === undefined ? expand(usualProperty) : checkName(expand(geoproperty), 'geoproperty')
  const isNamed = geoproperty !== undefined && property === usualProperty
  return { relation, geometry: reference, property, ...(isNamed ? { isNamed } : {}) }
}

function parseRelation(georel: string): GeoRelation {
  const planar = planarRelations.find((name) => name === georel)
  if (planar !== undefined) return { kind: planar }
  const near = /^near;(maxDistance|minDistance)==(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.exec(
    georel.replaceAll(' ', ''),
  )
  const metres = Number(near?.[2])
  if (!(metres > 0)) {
    const known = planarRelations.join(', ')
    throw badRequestData(`must be near;maxDistance==METRES, near;minDistance==METRES, ${known}`, 'georel')
  }
  return near![1] === 'maxDistance'
    ? { kind: 'near', maxDistance: metres }
    : { kind: 'near', minDistance: metres }
}

function parseCoordinates(coordinates: Json | undefined): Json {
  if (Array.isArray(coordinates)) return coordinates as readonly Json[]
  if (typeof coordinates !== 'string')
    throw badRequestData('is required with georel and geometry', 'coordinates')
  try {
    return JSON.parse(coordinates) as Json
  } catch {
    throw badRequestData('must be a JSON array', 'coordinates')
  }
}

/** The members of a geo-query in the form that clients send; `show` converts the name to the client's. */
export function renderGeoQuery(
  query: GeoQuery,
  show: (name: string) => string,
): { readonly [member: string]: Json } {
  const { relation, geometry, property, isNamed = property !== usualProperty } = query
  const near = 'maxDistance' in relation ? `maxDistance==${relation.maxDistance}` : undefined
  const far = 'minDistance' in relation ? `minDistance==${relation.minDistance}` : undefined
  return {
    georel: relation.kind === 'near' ? `near;${near ?? far}` : relation.kind,
    geometry: geometry.type,
    coordinates: geometry.coordinates,
    ...(isNamed ? { geoproperty: show(property) } : {}),
  }
}

/** Compiles the query to a test of one geometry; a value that is not a geometry never matches. */
export function compileGeometryTest(
  query: GeoQuery,
  budget = createQueryBudget(),
): (geometry: Json | undefined) => boolean {
  const reference = figureOf(query.geometry)!
  const test = relationTest(query.relation, reference)
  const steps = stepsPerPair * verticesOf(reference).length
  return (geometry) => {
    const figure = figureOf(geometry)
    return figure !== undefined && budget.spend(steps * verticesOf(figure).length) && test(figure)
  }
}

/** Cost of a pair of positions in pattern steps: their edges are compared in several ways. */
const stepsPerPair = 4

/** Compiles the query to a test of entities: any instance of the GeoProperty may match. */
export function compileGeoQuery(query: GeoQuery, budget = createQueryBudget()): (entity: Entity) => boolean {
  const test = compileGeometryTest(query, budget)
  return (entity) =>
    instancesOf(entity, query.property).some(({ type, value }) => type === 'GeoProperty' && test(value))
}

/** Whether an entity satisfies the query. To test many entities, compile the query once. */
export function matchesGeo(query: GeoQuery, entity: Entity): boolean {
  return compileGeoQuery(query)(entity)
}

function relationTest(relation: GeoRelation, reference: Figure): (figure: Figure) => boolean {
  if ('maxDistance' in relation)
    return (figure) => figureDistanceMeters(reference, figure) <= relation.maxDistance
  if ('minDistance' in relation)
    return (figure) => figureDistanceMeters(reference, figure) >= relation.minDistance
  switch (relation.kind) {
    case 'within':
      return (figure) => covers(reference, figure)
    case 'contains':
      return (figure) => covers(figure, reference)
    case 'intersects':
      return (figure) => intersects(reference, figure)
    case 'disjoint':
      return (figure) => !intersects(reference, figure)
    case 'equals':
      return (figure) => covers(reference, figure) && covers(figure, reference)
    case 'overlaps':
      return (figure) => overlaps(reference, figure)
  }
}

/**
 * Evaluates the query for a box: true if every geometry within it matches, false if none does, else
 * undefined. An index uses it to decide without reading entities; it stores points as very small boxes.
 */
export function compileBoxTest(query: GeoQuery): (box: Box) => boolean | undefined {
  const { relation } = query
  const reference = figureOf(query.geometry)!
  if (relation.kind === 'near') {
    const [from] = reference.points
    if (query.geometry.type !== 'Point' || from === undefined) return () => undefined
    return (box) => nearTest(relation, distanceBounds(from, box))
  }
  const allMatch = relation.kind === 'within' || relation.kind === 'intersects'
  if (verticesOf(reference).length > boxedPositionsMax) {
    const touches = (box: Box): boolean => intersects(figureOfBox(reference.box), figureOfBox(box))
    return (box) => (touches(box) ? undefined : relation.kind === 'disjoint')
  }
  return (box) => {
    const figure = figureOfBox(box)
    if (relation.kind === 'disjoint') return intersects(reference, figure) ? undefined : true
    if (!intersects(reference, figure)) return false
    return allMatch && covers(reference, figure) ? true : undefined
  }
}

/**
 * With more positions, comparing a box costs more than reading the entity, so only the reference's bounding
 * box is compared.
 */
const boxedPositionsMax = 64

/**
 * As `compileBoxTest`, for positions known to within `blurMeters`, in searches near a point; undefined for
 * any other query. It takes half the time of a box test, and less than reading an entity.
 */
export function compileNearTest(
  { relation, geometry }: GeoQuery,
  blurMeters: number,
): ((longitude: number, latitude: number) => boolean | undefined) | undefined {
  const [from] = figureOf(geometry)!.points
  if (!('maxDistance' in relation) || geometry.type !== 'Point' || from === undefined) return undefined
  const haversine = haversinesFrom(from)
  const surely = haversineOf(relation.maxDistance - blurMeters)
  const perhaps = haversineOf(relation.maxDistance + blurMeters)
  return (longitude, latitude) => {
    const away = haversine(longitude, latitude)
    return away <= surely ? true : away <= perhaps ? undefined : false
  }
}

function nearTest(relation: GeoRelation, [least, most]: readonly [number, number]): boolean | undefined {
  if ('maxDistance' in relation)
    return most <= relation.maxDistance ? true : least > relation.maxDistance ? false : undefined
  if ('minDistance' in relation)
    return least >= relation.minDistance ? true : most < relation.minDistance ? false : undefined
  return undefined
}

/** Bounding box of a well-formed geometry; undefined if the type is not a geometry type. */
export function boundingBoxOf(geometry: Json | undefined): Box | undefined {
  return figureOf(geometry)?.box
}

/**
 * Search boxes: the bounding box of every matching geometry touches at least one. Undefined if matches may
 * lie anywhere (disjoint, minDistance).
 */
export function searchBoxesOf(query: GeoQuery): readonly Box[] | undefined {
  const { relation } = query
  const [west, south, east, north] = figureOf(query.geometry)!.box
  if ('maxDistance' in relation) return boxesWithin(relation.maxDistance, [west, south, east, north])
  if ('minDistance' in relation || relation.kind === 'disjoint') return undefined
  const slack = 4 * touchDegrees
  return [[west - slack, south - slack, east + slack, north + slack]]
}
