/**
 * The multi-sensor data sets on which virtual sensors are evaluated: Beijing air, Los Angeles traffic,
 * Intel Berkeley laboratory and Aarhus parking. A set without positions selects sources by correlation.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import { correlationOf } from '#statistics/correlation.ts'

interface Sensor {
  readonly id: string
  readonly latitude: number
  readonly longitude: number
  /** One value per slot, NaN if missing. */
  readonly values: Float64Array
}

export interface SensorSet {
  readonly name: string
  readonly slotMs: number
  readonly begin: number
  readonly sensors: readonly Sensor[]
  /** How far sources may be; undefined if positions are unknown. */
  readonly radius: number | undefined
}

export interface Neighbour {
  readonly sensor: Sensor
  readonly distance: number
}

const sourcesMax = 8
const hourMs = 3_600_000
const unknown = { latitude: 0, longitude: 0 }

/** The sources of a sensor: the nearest ones, or the best correlated ones in the first `known` slots. */
export function neighboursOf(set: SensorSet, target: Sensor, known: number): readonly Neighbour[] {
  const others = set.sensors.filter((sensor) => sensor !== target)
  const { radius } = set
  if (radius === undefined) {
    const correlations = new Map(
      others.map((sensor) => [
        sensor,
        correlationOf(target.values.subarray(0, known), sensor.values.subarray(0, known)).correlation,
      ]),
    )
    return others
      .toSorted((a, b) => correlations.get(b)! - correlations.get(a)!)
      .slice(0, sourcesMax)
      .map((sensor, rank) => ({ sensor, distance: 1000 + rank }))
  }
  return others
    .map((sensor) => ({
      sensor,
      distance: distanceMeters([target.longitude, target.latitude], [sensor.longitude, sensor.latitude]),
    }))
    .filter(({ distance }) => distance <= radius)
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, sourcesMax)
}

/** All sets whose files exist in the folder. */
export function sensorSets(folder: string): readonly SensorSet[] {
  const beijing = (file: string, name: string, radius: number): SensorSet[] =>
    beijingSet(join(folder, 'beijing_air'), file, { name, radius })
  return [
    ...beijing('pm25.csv', 'PM2.5 20 km', 20_000),
    ...beijing('pm25.csv', 'PM2.5 60 km', 60_000),
    ...beijing('no2.csv', 'NO2 60 km', 60_000),
    ...beijing('o3.csv', 'O3 60 km', 60_000),
    ...beijing('temp.csv', 'temperature 60 km', 60_000),
    ...speedSet(join(folder, 'la_traffic')),
    ...intelSet(join(folder, 'intel_lab'), 'Temperature'),
    ...intelSet(join(folder, 'intel_lab'), 'Humidity'),
    ...parkingSet(join(folder, 'aarhus_parking')),
  ]
}

function beijingSet(folder: string, file: string, rest: Pick<SensorSet, 'name' | 'radius'>): SensorSet[] {
  if (!existsSync(join(folder, file))) return []
  const { header, lines } = linesOf(join(folder, file))
  const places = placesOf(join(folder, 'stations.csv'))
  const sensors = header.slice(1).map((id, i) => ({ id, ...places(id), values: columnOf(lines, i + 1) }))
  return [{ ...rest, slotMs: hourMs, begin: Date.parse(`${lines[0]![0]}Z`), sensors }]
}

function speedSet(folder: string): SensorSet[] {
  if (!existsSync(join(folder, 'speed.csv'))) return []
  const { header, lines } = linesOf(join(folder, 'speed.csv'))
  const places = placesOf(join(folder, 'sensors.csv'))
  const sensors = header.map((id, i) => ({ id, ...places(id), values: columnOf(lines, i) }))
  return [{ name: 'speed', radius: 20_000, slotMs: hourMs / 12, begin: Date.UTC(2012, 2, 1), sensors }]
}

/** Rows are sensors. The days of the test file follow those of the training file. */
function intelSet(folder: string, quantity: string): SensorSet[] {
  const parts = ['Train', 'Test']
    .map((part) => join(folder, `intel${quantity}${part}.csv`))
    .filter(existsSync)
  if (parts.length === 0) return []
  const rows = parts.map((path) => {
    const { header, lines } = linesOf(path)
    return [header, ...lines]
  })
  const sensors = rows[0]!.map((_, i) => ({
    id: `mote-${i}`,
    ...unknown,
    values: Float64Array.from(rows.flatMap((part) => part[i]!).map(parsedCell)),
  }))
  return [
    { name: `Intel ${quantity.toLowerCase()}`, radius: undefined, slotMs: hourMs / 2, begin: 0, sensors },
  ]
}

/** Parked vehicles as a share of the capacity. */
function parkingSet(folder: string): SensorSet[] {
  if (!existsSync(join(folder, 'vehiclecount.csv'))) return []
  const { header, lines } = linesOf(join(folder, 'vehiclecount.csv'))
  const capacities = new Map(
    linesOf(join(folder, 'capacity.csv')).lines.map(([id, total]) => [id, Number(total)]),
  )
  const sensors = header.slice(1).map((id, i) => ({
    id,
    ...unknown,
    values: columnOf(lines, i + 1).map((count) => count / capacities.get(id)!),
  }))
  return [
    {
      name: 'parking occupancy',
      radius: undefined,
      slotMs: hourMs / 2,
      begin: Date.parse(`${lines[0]![0]}Z`),
      sensors,
    },
  ]
}

/** From a table of id, then latitude and longitude in the order that its header gives. */
function placesOf(path: string): (id: string) => Pick<Sensor, 'latitude' | 'longitude'> {
  const { header, lines } = linesOf(path)
  const [latitude, longitude] = [header.indexOf('latitude'), header.indexOf('longitude')]
  const places = new Map(
    lines.map((line) => [line[0], { latitude: Number(line[latitude]), longitude: Number(line[longitude]) }]),
  )
  return (id) => places.get(id)!
}

function linesOf(path: string): { header: readonly string[]; lines: readonly (readonly string[])[] } {
  const [header = [], ...lines] = readFileSync(path, 'utf8')
    .trim()
    .split(/\r?\n/)
    .map((line) => line.split(','))
  return { header, lines }
}

const columnOf = (lines: readonly (readonly string[])[], column: number): Float64Array =>
  Float64Array.from(lines, (line) => parsedCell(line[column] ?? ''))

const parsedCell = (cell: string): number => (cell.trim() === '' ? Number.NaN : Number(cell))
