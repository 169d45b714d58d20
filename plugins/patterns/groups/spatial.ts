/**
 * The spatial part of a model, and the groups of streams that it makes: one stream for each observed property
 * of the model, in their order. Pure.
 */
import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import type { Json } from '#contract'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import { type Figure, figureOf, holds } from '#ngsi-ld/geo/figure.ts'
import { checkGeometry } from '#ngsi-ld/geo/geometry.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export type Spatial =
  | { readonly kind: 'same-location' }
  | { readonly kind: 'same-platform' }
  | { readonly kind: 'area'; readonly figure: Figure }
  | { readonly kind: 'radius'; readonly meters: number }

/** The facts of a stream that grouping needs. */
export interface PlacedStream {
  readonly id: string
  /** Ids of the properties that it observes. */
  readonly properties: readonly string[]
  /** Longitude, latitude. */
  readonly place?: readonly [number, number] | undefined
  readonly platform?: string | undefined
}

const expected =
  'must be {"sameLocation": true}, {"samePlatform": true}, {"area": GeoJSON} or {"radius": metres}'

export function parseSpatial(json: Json | undefined): Spatial {
  if (json === undefined) return { kind: 'same-location' }
  if (!isObject(json)) throw badRequestData(expected, 'spatial')
  const [[name, value] = ['', null], ...others] = Object.entries(json)
  if (others.length > 0) throw badRequestData(expected, 'spatial')
  if (name === 'sameLocation' && value === true) return { kind: 'same-location' }
  if (name === 'samePlatform' && value === true) return { kind: 'same-platform' }
  if (name === 'radius') {
    if (typeof value === 'number' && value > 0 && Number.isFinite(value))
      return { kind: 'radius', meters: value }
    throw badRequestData('must be a number of metres greater than 0', 'spatial.radius')
  }
  if (name === 'area') {
    const figure = figureOf(checkGeometry(value, 'spatial.area'))
    if (figure !== undefined && figure.polygons.length > 0) {
      const points = figure.polygons.flat().reduce((sum, ring) => sum + ring.length, 0)
      const most = limits.patternAreaPointsMax.value
      if (points > most)
        throw badRequestData(`has ${points} points, at most ${most} are taken`, 'spatial.area')
      return { kind: 'area', figure }
    }
    throw badRequestData('must be a Polygon or a MultiPolygon', 'spatial.area')
  }
  throw badRequestData(expected, 'spatial')
}

/**
 * The groups of a model. Streams are taken in order of their ids, so that groups do not depend on the order
 * in which streams were created.
 */
export async function groupsOf(
  spatial: Spatial,
  properties: readonly string[],
  streams: Iterable<PlacedStream>,
  yieldIfDue: YieldIfDue,
): Promise<readonly (readonly string[])[]> {
  const sorted = [...streams].sort((a, b) => (a.id < b.id ? -1 : 1))
  const groups =
    spatial.kind === 'radius'
      ? await groupsWithin(spatial.meters, properties, sorted, yieldIfDue)
      : [...(await partsOf(spatial, sorted, yieldIfDue)).values()].flatMap((part) =>
          groupsIn(part, properties),
        )
  return groups.slice(0, limits.patternGroupsMax.value)
}

/** Streams by what those of a group have in common. */
async function partsOf(
  spatial: Exclude<Spatial, { readonly kind: 'radius' }>,
  streams: readonly PlacedStream[],
  yieldIfDue: YieldIfDue,
): Promise<ReadonlyMap<string, readonly PlacedStream[]>> {
  const parts = new Map<string, PlacedStream[]>()
  for (const stream of streams) {
    await yieldIfDue()
    const key = keyOf(spatial, stream)
    if (key === undefined) continue
    const part = parts.get(key)
    if (part === undefined) parts.set(key, [stream])
    else part.push(stream)
  }
  return parts
}

function keyOf(
  spatial: Exclude<Spatial, { readonly kind: 'radius' }>,
  { place, platform }: PlacedStream,
): string | undefined {
  if (spatial.kind === 'same-platform') return platform
  if (place === undefined) return undefined
  if (spatial.kind === 'area') return holds(spatial.figure, place) ? '' : undefined
  return place.map((degrees) => degrees.toFixed(locationDigits)).join()
}

/** About 0.1 m: positions that differ by rounding are equal. */
const locationDigits = 6

/**
 * Groups within one part. A property that the model names several times has as many streams of each group. If
 * there are more streams of a property, there are more groups, until each stream is in one.
 */
function groupsIn(streams: readonly PlacedStream[], properties: readonly string[]): string[][] {
  const slots = new Map<string, number>()
  for (const property of properties) slots.set(property, (slots.get(property) ?? 0) + 1)
  const found = new Map(
    [...slots.keys()].map((property) => [
      property,
      streams.filter((stream) => stream.properties.includes(property)).map(({ id }) => id),
    ]),
  )
  let count = 0
  for (const [property, most] of slots) {
    const { length } = found.get(property)!
    if (length < most) return []
    count = Math.max(count, Math.floor(length / most))
  }
  return Array.from({ length: Math.min(count, limits.patternGroupsMax.value) }, (_, group) => {
    const used = new Map<string, number>()
    return properties.map((property) => {
      const slot = used.get(property) ?? 0
      used.set(property, slot + 1)
      const ids = found.get(property)!
      return ids[(group * slots.get(property)! + slot) % ids.length]!
    })
  })
}

/** One group around each stream of the first property: the nearest streams of the others. */
async function groupsWithin(
  meters: number,
  [first, ...others]: readonly string[],
  streams: readonly PlacedStream[],
  yieldIfDue: YieldIfDue,
): Promise<string[][]> {
  const placed = streams.filter(({ place }) => place !== undefined)
  const groups: string[][] = []
  for (const centre of placed) {
    if (!centre.properties.includes(first!)) continue
    const group = groupAround(centre, meters, { others, placed })
    if (group !== undefined) groups.push(group)
    if (groups.length >= limits.patternGroupsMax.value) break
    await yieldIfDue()
  }
  return groups
}

function groupAround(
  centre: PlacedStream,
  meters: number,
  { others, placed }: { readonly others: readonly string[]; readonly placed: readonly PlacedStream[] },
): string[] | undefined {
  const near = placed
    .map((stream) => ({ stream, distance: distanceMeters(centre.place!, stream.place!) }))
    .filter(({ stream, distance }) => stream !== centre && distance <= meters)
    .sort((a, b) => a.distance - b.distance)
  const group = [centre.id]
  for (const property of others) {
    const isNext = ({ stream: { id, properties } }: (typeof near)[number]): boolean =>
      properties.includes(property) && !group.includes(id)
    const next = near.find(isNext)
    if (next === undefined) return undefined
    group.push(next.stream.id)
  }
  return group
}
