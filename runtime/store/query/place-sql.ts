/**
 * Compiles a geo-query to an SQL condition: the cells of points and the boxes of other geometries that may
 * match. A refinement step decides most candidates without reading their entities.
 */

import { type Box, boxesTouch, isBoxWithin } from '#ngsi-ld/geo/figure.ts'
import {
  compileBoxTest,
  compileGeometryTest,
  compileNearTest,
  type GeoQuery,
  searchBoxesOf,
} from '#ngsi-ld/query/geo-query.ts'
import { scalarKinds } from '#store/entities/entity-index.ts'
import {
  boxOfCell,
  type CellRange,
  cellBlurMeters,
  cellRanges,
  middleOfCell,
} from '#store/entities/place-cell.ts'
import type { Unwritten, ValueTest } from './newer-values.ts'
import { type Arm, type ArmRow, listArm, type SqlCondition } from './sql-text.ts'

export interface SqlPorts {
  /** The number of an interned name; undefined when no entity has it. */
  readonly nameOf: (text: string) => number | undefined
  /** Values of an attribute that are not in the index yet; undefined when the index is current. */
  readonly unwritten?: (attribute: string, test: ValueTest) => Unwritten | undefined
  /** True if some entity has several values of the attribute with this number; left out, one may have. */
  readonly hasSeveral?: (name: number) => boolean
  /** True if some entity has a place that is not a point; left out, one may have. */
  readonly hasBoxes?: () => boolean
}

/** Places are more selective than ranges, and less than equal values. */
const rank = 2

const noNumber = { low: Infinity, high: -Infinity }

/** @param exists the condition that an entity has the property at all. */
export function geoCondition(geo: GeoQuery, exists: SqlCondition, ports: SqlPorts): SqlCondition {
  const superset: SqlCondition = { ...exists, armsExact: false, probeExact: false }
  const boxes = searchBoxesOf(geo)
  if (boxes === undefined) return superset
  const name = ports.nameOf(geo.property)
  if (name === undefined) return superset
  const fresh = ports.unwritten?.(geo.property, { ...noNumber, fits: compileGeometryTest(geo) })
  const test = compileBoxTest(geo)
  const ofBox = (box: Box | undefined): boolean | undefined => box && test(box)
  const isNear = geo.relation.kind === 'near'
  const { whole, edge } = cellRanges(boxes, (box) => {
    const verdict = windowVerdict(box, boxes)
    return verdict === false || !isNear ? verdict : test(box)
  })
  // If there are newer values, or only the window is tested, each row is refined.
  const isSure = isNear && fresh === undefined
  const arms = [
    ...(whole.length === 0 ? [] : [{ ...cellsArm(name, whole), isSure }]),
    ...(edge.length === 0 ? [] : [cellsArm(name, edge)]),
    ...(ports.hasBoxes?.() === false ? [] : boxes.map((box) => placeArm(name, box))),
  ]
  const near = compileNearTest(geo, cellBlurMeters)
  const refine = (row: ArmRow): boolean | undefined => {
    const verdict =
      near !== undefined && row.length === 2 ? near(...middleOfCell(row[1] as number)) : ofBox(boxOfRow(row))
    // A row with a newer value may be stale; the list of newer values contains it if it matches.
    return verdict === true && fresh?.has(row[0]) === true ? undefined : verdict
  }
  const newer = fresh === undefined ? [] : [listArm(fresh.rids)]
  return { ...superset, arms: [...arms, ...newer], ordered: false, rank, refine }
}

/** The bounding box in a row of a cell, a place or a list. */
function boxOfRow(row: ArmRow): Box | undefined {
  if (row.length === 2) return boxOfCell(row[1] as number)
  return row.length === 5 ? (row.slice(1) as unknown as Box) : undefined
}

function windowVerdict(box: Box, windows: readonly Box[]): boolean | undefined {
  if (!windows.some((window) => boxesTouch(box, window))) return false
  return windows.some((window) => isBoxWithin(box, window)) ? true : undefined
}

/**
 * All ranges in one arm: its SQL text is then constant, and one SELECT per range would cost more than its
 * rows.
 */
function cellsArm(name: number, ranges: readonly CellRange[]): Arm {
  return {
    columns: 'd.value',
    // CROSS JOIN fixes the loop order: the few ranges outside, an index range scan for each inside.
    from: 'json_each(?) r CROSS JOIN scalar d',
    where: 'd.name = ? AND d.kind = ? AND d.value >= r.value ->> 0 AND d.value <= r.value ->> 1',
    params: [JSON.stringify(ranges), name, scalarKinds.cell],
    part: {
      column: { name, kind: scalarKinds.cell },
      ranges: ranges.map(([low, high]) => ({ low, high })),
    },
  }
}

function placeArm(name: number, [west, south, east, north]: Box): Arm {
  return {
    columns: 'd.x0, d.y0, d.x1, d.y1',
    from: 'place d',
    where: 'd.x0 <= ? AND d.x1 >= ? AND d.y0 <= ? AND d.y1 >= ? AND d.name = ?',
    params: [east, west, north, south, name],
  }
}
