/**
 * A geo-query as an SQL condition: cells of points and boxes of all other geometries that may satisfy, and a closer
 * look at each row, by which most candidates are decided without reading their entities.
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
import type { Condition } from './sql-text.ts'
import { type Arm, type ArmRow, listArm } from './sql-text.ts'

export interface SqlPorts {
  /** The number of an interned name; undefined when no entity has it. */
  readonly nameOf: (text: string) => number | undefined
  /** What the index does not know yet of an attribute; undefined when it is current. */
  readonly unwritten?: (attribute: string, test: ValueTest) => Unwritten | undefined
  /** Whether some entity has several values of an attribute of this number; left out, one may have. */
  readonly hasSeveral?: (name: number) => boolean
  /** Whether some entity is at a place that is no point; left out, one may be. */
  readonly hasBoxes?: () => boolean
}

/** Places select more than equal values do, and less than ranges. */
const rank = 2

const noNumber = { low: Infinity, high: -Infinity }

/** @param exists the condition that an entity has the property at all. */
export function geoCondition(geo: GeoQuery, exists: Condition, ports: SqlPorts): Condition {
  const superset: Condition = { ...exists, armsExact: false, probeExact: false }
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
  // Where newer values exist, and where only the window is known, each row is looked at.
  const isSure = isNear && fresh === undefined
  const arms = [
    ...(whole.length === 0 ? [] : [{ ...cellsArm(name, whole), isSure }]),
    ...(edge.length === 0 ? [] : [cellsArm(name, edge)]),
    ...(ports.hasBoxes?.() === false ? [] : boxes.map((box) => placeArm(name, box))),
  ]
  const near = compileNearTest(geo, cellBlurMeters)
  const look = (row: ArmRow): boolean | undefined => {
    const verdict =
      near !== undefined && row.length === 2 ? near(...middleOfCell(row[1] as number)) : ofBox(boxOfRow(row))
    // Where newer values exist, a row may tell of yesterday; what fits today is among the fresh ones.
    return verdict === true && fresh?.has(row[0]) === true ? undefined : verdict
  }
  const newer = fresh === undefined ? [] : [listArm(fresh.rids)]
  return { ...superset, arms: [...arms, ...newer], ordered: false, rank, look }
}

/** What a row of a cell, of a place or of a list says of where its entity is. */
function boxOfRow(row: ArmRow): Box | undefined {
  if (row.length === 2) return boxOfCell(row[1] as number)
  return row.length === 5 ? (row.slice(1) as unknown as Box) : undefined
}

function windowVerdict(box: Box, windows: readonly Box[]): boolean | undefined {
  if (!windows.some((window) => boxesTouch(box, window))) return false
  return windows.some((window) => isBoxWithin(box, window)) ? true : undefined
}

/** All ranges in one arm: its text is always the same, and a select for each would cost more than its rows. */
function cellsArm(name: number, ranges: readonly CellRange[]): Arm {
  return {
    columns: 'd.value',
    // CROSS JOIN keeps the order of the loops: the few ranges outside, a piece of the index for each inside.
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
