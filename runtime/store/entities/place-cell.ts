/**
 * Maps a position on the globe to one number, so that points can be stored in an ordinary index. Longitude
 * and latitude are divided into 2^26 parts each (0.6 m and 0.3 m), and their bits are interleaved (Z-order
 * curve). Positions close to each other mostly have close numbers, and a box is a few ranges of them. A cell
 * gives a position to within the size of the cell, never exactly.
 */
import type { Box } from '#ngsi-ld/geo/figure.ts'

const bits = 26
const parts = 2 ** bits
const half = 2 ** 13

/**
 * When there are more squares than this, no further square is divided: finer ranges cost more lookups than
 * they save.
 */
const squaresEnough = 48

/** The cell of a position; undefined outside ±180 degrees of longitude and ±90 of latitude. */
export function cellOf(longitude: number, latitude: number): number | undefined {
  if (!(Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90)) return undefined
  return interleave(column(longitude), row(latitude))
}

/** A box that contains every position of a cell. */
export const boxOfCell = (cell: number): Box => boxOfSquare({ ...cornerOf(cell), size: 1 })

/** The position at the centre of a cell. */
export function middleOfCell(cell: number): readonly [longitude: number, latitude: number] {
  const { x, y } = cornerOf(cell)
  return [longitudeOf(x + 0.5), latitudeOf(y + 0.5)]
}

/** All positions of a cell are within so many metres of its centre: half of 0.6 by 0.3, plus rounding. */
export const cellBlurMeters = 1

function cornerOf(cell: number): { readonly x: number; readonly y: number } {
  const high = Math.floor(cell / parts)
  const low = cell % parts
  return {
    x: gather(high) * half + gather(low),
    y: gather(high >>> 1) * half + gather(low >>> 1),
  }
}

/** The first and the last of consecutive cells. */
export type CellRange = readonly [first: number, last: number]

/** Cells that together contain every wanted position. */
export interface CellRanges {
  /** Every position of these cells is wanted. */
  readonly whole: readonly CellRange[]
  /** Some positions of these cells may be wanted. */
  readonly edge: readonly CellRange[]
}

/**
 * Returns the cells of the wanted positions, all of which are within the windows. `test` returns for a box
 * whether all (true), none (false) or some (undefined) of its positions are wanted.
 */
export function cellRanges(windows: readonly Box[], test: (box: Box) => boolean | undefined): CellRanges {
  const whole: Square[] = []
  const least: Square[] = []
  let cut = squaresAround(windows)
  while (cut.length > 0 && whole.length + least.length + cut.length <= squaresEnough) {
    const rest: Square[] = []
    for (const square of cut.flatMap(quarters)) {
      const verdict = test(boxOfSquare(square))
      if (verdict === true) whole.push(square)
      else if (verdict === undefined) (square.size === 1 ? least : rest).push(square)
    }
    cut = rest
  }
  return { whole: merged(whole), edge: merged([...least, ...cut]) }
}

/** A square of cells at a corner that is a multiple of its size. */
interface Square {
  readonly x: number
  readonly y: number
  readonly size: number
}

/** Squares of equal size that together contain the windows; up to four for one window. */
function squaresAround(windows: readonly Box[]): readonly Square[] {
  const corners = windows.map(([west, south, east, north]) => [
    column(within(west, 180)),
    row(within(south, 90)),
    column(within(east, 180)),
    row(within(north, 90)),
  ]) as unknown as Box[]
  const widest = Math.max(...corners.map(([x0, y0, x1, y1]) => Math.max(x1 - x0, y1 - y0)))
  // The caller tests their quarters.
  const size = Math.max(2, 2 ** Math.ceil(Math.log2(widest + 1)))
  const squares = new Map<number, Square>()
  for (const [x0, y0, x1, y1] of corners) {
    for (let x = x0 - (x0 % size); x <= x1; x += size)
      for (let y = y0 - (y0 % size); y <= y1; y += size) squares.set(x * parts + y, { x, y, size })
  }
  return [...squares.values()]
}

const within = (degrees: number, bound: number): number => Math.max(-bound, Math.min(bound, degrees))

function quarters({ x, y, size }: Square): readonly Square[] {
  const next = size / 2
  return [
    { x, y, size: next },
    { x: x + next, y, size: next },
    { x, y: y + next, size: next },
    { x: x + next, y: y + next, size: next },
  ]
}

function boxOfSquare({ x, y, size }: Square): Box {
  return [
    longitudeOf(x) - slack,
    latitudeOf(y) - slack,
    longitudeOf(x + size) + slack,
    latitudeOf(y + size) + slack,
  ]
}

function merged(squares: readonly Square[]): readonly CellRange[] {
  const ranges = squares
    .map(({ x, y, size }): [number, number] => {
      const first = interleave(x, y)
      return [first, first + size * size - 1]
    })
    .sort((a, b) => a[0] - b[0])
  const joined: [number, number][] = []
  for (const range of ranges) {
    const last = joined.at(-1)
    if (last !== undefined && last[1] + 1 === range[0]) last[1] = range[1]
    else joined.push(range)
  }
  return joined
}

/** Rounding errors of the divisions below are far smaller. */
const slack = 1e-9

function column(longitude: number): number {
  return Math.min(parts - 1, Math.floor(((longitude + 180) / 360) * parts))
}

function row(latitude: number): number {
  return Math.min(parts - 1, Math.floor(((latitude + 90) / 180) * parts))
}

function longitudeOf(x: number): number {
  return (x / parts) * 360 - 180
}

function latitudeOf(y: number): number {
  return (y / parts) * 180 - 90
}

/**
 * Puts the bits of x at even positions and those of y at odd ones: 52 bits, exact in a number. Each half is
 * handled separately, because shifts work on 32 bits.
 */
function interleave(x: number, y: number): number {
  const high = spread(Math.floor(x / half)) | (spread(Math.floor(y / half)) << 1)
  const low = spread(x % half) | (spread(y % half) << 1)
  return high * parts + low
}

/** Spreads 13 bits, with a gap after each. */
function spread(value: number): number {
  let spaced = value
  spaced = (spaced | (spaced << 8)) & 0x00ff00ff
  spaced = (spaced | (spaced << 4)) & 0x0f0f0f0f
  spaced = (spaced | (spaced << 2)) & 0x33333333
  return (spaced | (spaced << 1)) & 0x55555555
}

/** Collects the bits at even positions. */
function gather(value: number): number {
  let closed = value & 0x55555555
  closed = (closed | (closed >>> 1)) & 0x33333333
  closed = (closed | (closed >>> 2)) & 0x0f0f0f0f
  closed = (closed | (closed >>> 4)) & 0x00ff00ff
  return (closed | (closed >>> 8)) & 0x0000ffff
}
