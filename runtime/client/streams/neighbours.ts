/**
 * Finds the nearest members of the same label within a radius. Members are in cells as wide as the radius, so
 * a search reads nine cells, and at most `limits.pluginNeighbourScan` members.
 */
import { limits } from '#base/limits/limits.ts'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'

/** Longitude, latitude. */
export type Place = readonly [number, number]

export interface Neighbours<T> {
  /** Adds or moves a member. */
  put(member: T, label: string, place: Place): void
  delete(member: T): void
  /** The nearest others, `limits.pluginNeighboursMax` at most, the nearest first. */
  of(member: T): readonly T[]
}

interface Spot<T> {
  readonly member: T
  readonly place: Place
  readonly group: Group<T>
  readonly cell: number
  /** The latest result, of these versions of the group. */
  near: readonly T[]
  added: number
  removed: number
  /** Requests until the next search. */
  uses: number
}

interface Group<T> {
  readonly cells: Map<number, Spot<T>[]>
  /** These increase with each added and each removed member. */
  added: number
  removed: number
}

const degreeMeters = 111_195
/** Requests that one search serves. */
const usesMax = 24

/**
 * Whether a result may lack a member or have one too many. A full one may lack a nearer one until its uses
 * end.
 */
function isStale<T>({ near, added, removed, group }: Spot<T>): boolean {
  return (
    removed !== group.removed || (added !== group.added && near.length < limits.pluginNeighboursMax.value)
  )
}

/** @param isActive whether a member is worth finding; read with each search. */
export function createNeighbours<T>(radiusMeters: number, isActive: (member: T) => boolean): Neighbours<T> {
  const groups = new Map<string, Group<T>>()
  const spots = new Map<T, Spot<T>>()
  let searches = 0
  const height = Math.max(radiusMeters, 100) / degreeMeters
  const rowOf = (latitude: number): number => Math.floor((latitude + 90) / height)

  /** Columns around the globe in a row, each at least as wide as the radius. */
  function columnsOf(row: number): number {
    const pole = Math.min(90, Math.max(Math.abs(row * height - 90), Math.abs((row + 1) * height - 90)))
    return Math.max(1, Math.floor((360 / height) * Math.cos((pole * Math.PI) / 180)))
  }
  const columnOf = (longitude: number, columns: number): number =>
    Math.floor(((((longitude + 180) % 360) + 360) % 360) * (columns / 360))
  const columnsMax = Math.ceil(360 / height)
  const cellOf = (row: number, column: number): number => row * columnsMax + column

  function* cellsAround([longitude, latitude]: Place): Iterable<number> {
    for (let row = rowOf(latitude) - 1; row <= rowOf(latitude) + 1; row++) {
      const columns = columnsOf(row)
      const middle = columnOf(longitude, columns)
      const side = columns < 3 ? 0 : 1
      for (let column = middle - side; column <= middle + side; column++)
        yield cellOf(row, (column + columns) % columns)
      if (columns === 2) yield cellOf(row, 1 - middle)
    }
  }

  function search(member: T, { place, group }: Spot<T>): readonly T[] {
    const near: T[] = []
    const distances: number[] = []
    const most = limits.pluginNeighboursMax.value
    let scanned = 0
    for (const cell of cellsAround(place))
      for (const { member: one, place: at } of group.cells.get(cell) ?? []) {
        if (++scanned > limits.pluginNeighbourScan.value) break
        if (one === member || !isActive(one)) continue
        const meters = distanceMeters(place, at)
        if (meters > radiusMeters || meters >= (distances[most - 1] ?? Number.POSITIVE_INFINITY)) continue
        const after = distances.findIndex((other) => other > meters)
        const index = after === -1 ? distances.length : after
        distances.splice(index, 0, meters)
        near.splice(index, 0, one)
        distances.length = near.length = Math.min(most, near.length)
      }
    return near
  }

  function remove(member: T): void {
    const spot = spots.get(member)
    if (spot === undefined) return
    spots.delete(member)
    const { group, cell } = spot
    group.removed++
    const inCell = group.cells.get(cell)!
    inCell.splice(inCell.indexOf(spot), 1)
    if (inCell.length === 0) group.cells.delete(cell)
  }

  return Object.freeze({
    put(member, label, place) {
      const group: Group<T> = groups.get(label) ?? { cells: new Map(), added: 0, removed: 0 }
      const before = spots.get(member)
      if (before?.group === group && before.place[0] === place[0] && before.place[1] === place[1]) return
      const row = rowOf(place[1])
      const cell = cellOf(row, columnOf(place[0], columnsOf(row)))
      remove(member)
      groups.set(label, group)
      group.added++
      const spot = { member, place, group, cell, near: [], added: 0, removed: 0, uses: 0 }
      const inCell = group.cells.get(cell)
      if (inCell === undefined) group.cells.set(cell, [spot])
      else inCell.push(spot)
      spots.set(member, spot)
    },
    delete: remove,
    of(member) {
      const spot = spots.get(member)
      if (spot === undefined) return []
      if (isStale(spot) || spot.near.length === 0 || spot.uses-- <= 0) {
        spot.near = search(member, spot)
        spot.added = spot.group.added
        spot.removed = spot.group.removed
        // Members that are compared together do not search together again.
        spot.uses = usesMax - (searches++ % (usesMax / 2))
      }
      return spot.near
    },
  } satisfies Neighbours<T>)
}
