/**
 * Writes the rows that the virtual-sensor model learns from: Beijing stations in turn play the place without a sensor,
 * random sets of the other stations are its sources.
 * `node models/train/neighbourhoods.ts --data DIR --out DIR --seed N`; virtual_sensor.py reads what it writes.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import {
  type Neighbourhood,
  neighbourhoodScale,
  neighbourhoodSources,
  neighbourhoodWidth,
  writeNeighbourhood,
} from '#plugins/virtual-sensors/families/neighbourhood-features.ts'
import { correlationOf } from '#statistics/correlation.ts'
import { correlogramOf, krigingWeightsOf } from '#statistics/kriging.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { numberOf, readTable, trainingShare } from './series.ts'

const { values: options } = parseArgs({
  options: {
    data: { type: 'string' },
    out: { type: 'string' },
    seed: { type: 'string', default: '1' },
    rows: { type: 'string', default: '200000' },
    /** `test` writes rows of the last 30 % with all sources instead. */
    part: { type: 'string', default: 'training' },
  },
})
const { data: folder, out, part } = options
if (folder === undefined || out === undefined) throw new TypeError('--data DIR and --out DIR are required')
const random = createSeededRandom(Number(options.seed))
const isTest = part === 'test'
const testFrom = 0.7
const radiusMeters = 60_000
/** Temperature is left out: four stations are too few to learn from. */
const pollutants = ['pm25', 'no2', 'o3']
const lostShare = 0.1
const heldSlots = 3
const hourMs = 3_600_000

interface Station {
  readonly name: string
  readonly place: readonly [number, number]
  readonly values: Float64Array
}

const places = new Map(
  readTable(join(folder, 'beijing_air', 'stations.csv')).rows.map(
    ([name, longitude, latitude]) => [name!, [Number(longitude), Number(latitude)] as const] as const,
  ),
)
const networks = pollutants.map((quantity): { begin: number; stations: readonly Station[] } => {
  const { columns, rows } = readTable(join(folder, 'beijing_air', `${quantity}.csv`))
  const stations = columns.slice(1).map((name, column) => ({
    name,
    place: places.get(name)!,
    values: Float64Array.from(rows, (row) => numberOf(row[column + 1])),
  }))
  return { begin: Date.parse(`${rows[0]![0]}Z`), stations }
})

const total = Number(options.rows)
const truthColumns = 6
const features = new Float32Array(total * neighbourhoodWidth)
/** Per row: the truth in the scale of the sources, the deviation of that scale, the quantity, the station, the slot. */
const truths = new Float32Array(total * truthColumns)
let written = 0
while (written < total) {
  const quantity = Math.floor(random() * networks.length)
  const { begin, stations } = networks[quantity]!
  const target = stations[Math.floor(random() * stations.length)]!
  const others = stations
    .filter((one) => one !== target && distanceMeters(one.place, target.place) <= radiusMeters)
    .toSorted((a, b) => distanceMeters(a.place, target.place) - distanceMeters(b.place, target.place))
  const kept = isTest ? others : others.filter(() => random() < keptShare(written))
  const sources = kept.slice(0, neighbourhoodSources)
  if (sources.length < 2) continue
  const slots = target.values.length
  const known = Math.floor(slots * trainingShare)
  const scaled = neighbourhoodScale(sources.map(({ values }) => values.subarray(0, known)))
  if (scaled === undefined) continue
  const neighbourhood = {
    ...scaled,
    distances: sources.map(({ place }) => distanceMeters(place, target.place)),
    between: sources.map((a) => sources.map((b) => distanceMeters(a.place, b.place))),
  }
  const correlogram = correlogramOf(
    sources.flatMap((a, i) =>
      sources.slice(0, i).map((b, j) => ({
        distance: neighbourhood.between[i]![j]!,
        correlation: correlationOf(a.values.subarray(0, known), b.values.subarray(0, known)).correlation,
      })),
    ),
  )
  const kriging = (readings: readonly { readonly value: number }[]): number => {
    const present = readings.flatMap(({ value }, i) => (Number.isNaN(value) ? [] : [i]))
    const found = krigingWeightsOf({
      between: present.map((i) => present.map((j) => neighbourhood.between[i]![j]!)),
      toPlace: present.map((i) => neighbourhood.distances[i]!),
      correlogram,
    })
    return present.reduce((sum, source, i) => sum + found!.weights[i]! * readings[source]!.value, 0)
  }
  for (let i = 0; i < 50 && written < total; i++) {
    const from = isTest ? Math.floor(slots * testFrom) : heldSlots
    const slot = from + Math.floor(random() * ((isTest ? slots : known) - from))
    const truth = target.values[slot]!
    if (!Number.isFinite(truth)) continue
    const lost = isTest ? 0 : lostShare
    const readings = sources.map(({ values }) => {
      for (let age = 0; age <= heldSlots; age++) {
        const value = values[slot - age]!
        if (Number.isFinite(value) && random() >= lost) return { value, ageSlots: age }
      }
      return { value: Number.NaN, ageSlots: 0 }
    })
    if (readings.every(({ value }) => Number.isNaN(value))) continue
    const estimate = kriging(readings)
    writeNeighbourhood(
      neighbourhood,
      { sources: readings, kriging: estimate, at: begin + slot * hourMs },
      {
        target: features,
        offset: written * neighbourhoodWidth,
      },
    )
    const { mean, deviation } = scaled.scale
    truths.set(
      [
        (truth - mean) / deviation,
        deviation,
        quantity,
        stations.indexOf(target),
        slot,
        (estimate - mean) / deviation,
      ],
      written * truthColumns,
    )
    written++
  }
}
writeVector()
mkdirSync(out, { recursive: true })
writeFileSync(join(out, `virtual-${part}.f32`), features)
writeFileSync(join(out, `virtual-${part}-truths.f32`), truths)

/** A row with what it was made of, by which a test notices that the features are no longer those of the training. */
function writeVector(): void {
  const neighbourhood: Neighbourhood = {
    scale: { mean: 40, deviation: 20 },
    distances: [3000, 5000, 12_000],
    between: [
      [0, 4000, 9000],
      [4000, 0, 8000],
      [9000, 8000, 0],
    ],
    means: [45, 38, 30],
  }
  // The second source has no value.
  const slot = { values: [52, null, 28.5], ages: [0, 0, 2], kriging: 43.25, at: 1_425_200_400_000 }
  const target = new Float32Array(neighbourhoodWidth)
  const sources = slot.values.map((value, i) => ({ value: value ?? Number.NaN, ageSlots: slot.ages[i]! }))
  writeNeighbourhood(neighbourhood, { sources, kriging: slot.kriging, at: slot.at }, { target, offset: 0 })
  const features = [...target].map((number) => (Number.isNaN(number) ? null : number))
  const text = JSON.stringify({ neighbourhood, slot, features })
  writeFileSync(join(import.meta.dirname, 'neighbourhood-vector.json'), `${text}\n`)
}

/** Some rows have nearly all sources, others few. */
function keptShare(row: number): number {
  return row % 3 === 0 ? 0.4 : 0.85
}
