/**
 * Parses recorded series from CSV text: one column per device (the file names the quantity), or one row per
 * device and time (the columns name the quantities). A file with longitude and latitude contains places.
 * Pure; a cell that is not a number is a missing value.
 */

/** The measurements of a device at one time. */
export interface Sample {
  readonly at: number
  readonly device: string
  readonly values: readonly (readonly [quantity: string, value: number])[]
}

export type LonLat = readonly [longitude: number, latitude: number]

export type SeriesTable =
  | { readonly kind: 'samples'; readonly samples: readonly Sample[] }
  | { readonly kind: 'places'; readonly places: ReadonlyMap<string, LonLat> }
  | { readonly kind: 'unknown'; readonly reason: string }

/** Times for series without a time column: the rows have a distance of `step`. */
export interface SeriesStep {
  readonly step: number
  /** Time of the last row, ms. */
  readonly end: number
}

const timeName = /^(time|timestamp|date|date_?time|ts)$/i
const orderName = /^(reading|index|row|seq|sequence|no|n)$/i
const deviceName = /^(.+_)?(id|device|sensor|mote|station)(_id)?$/i

/** @param name the file name without extension; it names the quantity, or is a prefix of device numbers. */
export function readTable(name: string, text: string, pace: SeriesStep): SeriesTable {
  const rows = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  const header = rows.shift()?.split(',').map(unquoted) ?? []
  if (header.length < 2 || rows.length === 0)
    return { kind: 'unknown', reason: 'it has no columns or no rows' }
  if (header.every((cell) => Number.isFinite(Number(cell))) && header.some((cell) => /[.eE]/.test(cell))) {
    return { kind: 'unknown', reason: 'its first line contains values instead of names' }
  }
  const cells = rows.map((row) => row.split(',').map(unquoted))
  const lower = header.map((cell) => cell.toLowerCase())
  const [longitude, latitude] = [lower.indexOf('longitude'), lower.indexOf('latitude')]
  const time = header.findIndex((cell) => timeName.test(cell))
  if (longitude >= 0 && latitude >= 0 && time < 0) return readPlaces(cells, longitude, latitude)
  const device = header.findIndex((cell) => deviceName.test(cell))
  const order = time < 0 ? header.findIndex((cell) => orderName.test(cell)) : -1
  const atOf = time >= 0 ? (row: readonly string[]) => timeOf(row[time]!) : paced(cells, order, pace)
  const columns = header.flatMap((cell, i) =>
    i === time || i === order || i === device ? [] : [[cell, i] as const],
  )
  const samples =
    device >= 0 ? longSamples(name, cells, device, columns, atOf) : wideSamples(name, cells, columns, atOf)
  if (samples.length === 0) return { kind: 'unknown', reason: 'it contains no number with a time' }
  return { kind: 'samples', samples }
}

type Columns = readonly (readonly [name: string, index: number])[]
type AtOf = (row: readonly string[], index: number) => number | undefined

function wideSamples(quantity: string, rows: readonly string[][], columns: Columns, atOf: AtOf): Sample[] {
  const single = columns.length === 1
  return rows.flatMap((row, index) => {
    const at = atOf(row, index)
    if (at === undefined) return []
    return columns.flatMap(([column, i]): Sample[] => {
      const value = numberOf(row[i])
      if (value === undefined) return []
      // A single column, such as `timestamp,value`, is the series of one device, named by the file.
      return [{ at, device: single ? quantity : column, values: [[single ? column : quantity, value]] }]
    })
  })
}

function longSamples(
  name: string,
  rows: readonly string[][],
  device: number,
  columns: Columns,
  atOf: AtOf,
): Sample[] {
  return rows.flatMap((row, index): Sample[] => {
    const at = atOf(row, index)
    const values = columns.flatMap(([column, i]) => {
      const value = numberOf(row[i])
      return value === undefined ? [] : [[column, value] as const]
    })
    const id = row[device] ?? ''
    return at === undefined || id === '' || values.length === 0
      ? []
      : [{ at, device: `${name}-${id}`, values }]
  })
}

function readPlaces(rows: readonly string[][], longitude: number, latitude: number): SeriesTable {
  const own = [0, 1, 2].find((i) => i !== longitude && i !== latitude)!
  const places = new Map<string, LonLat>()
  for (const row of rows) {
    const [lon, lat] = [numberOf(row[longitude]), numberOf(row[latitude])]
    if (lon !== undefined && lat !== undefined && row[own] !== undefined) places.set(row[own], [lon, lat])
  }
  return { kind: 'places', places }
}

/** Times of rows without one: by the order column or the line number, ending at `pace.end`. */
function paced(rows: readonly string[][], order: number, { step, end }: SeriesStep): AtOf {
  const place = (row: readonly string[], index: number): number | undefined =>
    order < 0 ? index : numberOf(row[order])
  const last = rows.reduce((most, row, index) => Math.max(most, place(row, index) ?? 0), 0)
  return (row, index) => {
    const n = place(row, index)
    return n === undefined ? undefined : Math.round(end - (last - n) * step)
  }
}

/**
 * Parses ISO 8601, with an optional blank instead of T and UTC as default zone; or seconds or milliseconds
 * since 1970.
 */
export function timeOf(cell: string): number | undefined {
  const number = numberOf(cell)
  if (number !== undefined) return number > 1e11 ? Math.round(number) : Math.round(number * 1000)
  const iso = cell.trim().replace(' ', 'T')
  const at = Date.parse(/T/.test(iso) && !/(Z|[+-]\d\d:?\d\d)$/i.test(iso) ? `${iso}Z` : iso)
  return Number.isNaN(at) ? undefined : at
}

export function numberOf(cell: string | undefined): number | undefined {
  if (cell === undefined || cell.trim() === '') return undefined
  const value = Number(cell)
  return Number.isFinite(value) ? value : undefined
}

export function unquoted(cell: string): string {
  return cell.trim().replace(/^"(.*)"$/, '$1')
}
