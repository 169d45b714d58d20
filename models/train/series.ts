/**
 * The series that shipped models learn from: Beijing air quality, the motes of Suthaharan et al. without their labelled
 * events, and made-up feeds. Only the first 60 % of each measured series is read, so that what follows can measure.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSeededRandom } from '#statistics/seeded-random.ts'

export interface Series {
  readonly name: string
  /** A value per slot; NaN is a missing value. */
  readonly values: Float64Array
}

export interface Table {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export const trainingShare = 0.6
const quantities = ['pm25', 'no2', 'o3', 'temp'] as const

export function readTable(path: string): Table {
  const [header = '', ...lines] = readFileSync(path, 'utf8').trim().split(/\r?\n/)
  return { columns: header.split(','), rows: lines.map((line) => line.split(',')) }
}

export const numberOf = (cell: string | undefined): number =>
  cell === undefined || cell.trim() === '' ? Number.NaN : Number(cell)

/** The first 60 % of all stations. */
export function beijingSeries(folder: string): readonly Series[] {
  return quantities.flatMap((quantity) => {
    const { columns, rows } = readTable(join(folder, 'beijing_air', `${quantity}.csv`))
    const until = Math.floor(rows.length * trainingShare)
    return columns.slice(1).map((station, column) => ({
      name: `${quantity}/${station}`,
      values: Float64Array.from(rows.slice(0, until), (row) => numberOf(row[column + 1])),
    }))
  })
}

/** Values of labelled events are missing values here. */
export function moteSeries(folder: string): readonly Series[] {
  return ['multi_hop', 'single_hop'].flatMap((hop) => {
    const { rows } = readTable(join(folder, 'wsn_suthaharan', `${hop}.csv`))
    return [...Map.groupBy(rows, (row) => row[1]!)].flatMap(([mote, own]) =>
      [3, 4].map((column) => ({
        name: `${hop}/${mote}/${column}`,
        values: Float64Array.from(own.slice(0, Math.floor(own.length * trainingShare)), (row) =>
          row[5] === '1' ? Number.NaN : numberOf(row[column]),
        ),
      })),
    )
  })
}

/** Feeds of many kinds: a daily course, autoregressive noise, jumps between regimes, limits and coarse resolutions. */
export function madeUpSeries(count: number, seed: number): readonly Series[] {
  return Array.from({ length: count }, (_, i) => madeUp(`made-up/${i}`, createSeededRandom(seed + 7919 * i)))
}

const madeUpLength = 2000

function madeUp(name: string, random: () => number): Series {
  const normal = normalOf(random)
  const period = [24, 48, 96, 144, 288, 1440][Math.floor(random() * 6)]!
  const memory = random() ** 0.3
  const noise = 10 ** (-1.5 + 1.5 * random())
  const amplitude = random() < 0.8 ? random() * 3 : 0
  const second = random() * amplitude * 0.5
  const isMultiplicative = random() < 0.35
  const hasHeavyTail = random() < 0.3
  const jumpChance = random() < 0.4 ? 0.003 * random() : 0
  const decimals = random() < 0.7 ? 10 ** -Math.floor(random() * 3 - 0.5) : 0.001
  const scale = 10 ** (random() * 2)
  const hasFloor = random() < 0.2
  const dayNoise = random() < 0.3
  const phase = random() * 2 * Math.PI
  let state = normal()
  let regime = 0
  const values = new Float64Array(madeUpLength)
  for (let t = 0; t < madeUpLength; t++) {
    if (random() < jumpChance) regime = regime === 0 || random() < 0.5 ? normal() * 2 : 0
    const angle = (2 * Math.PI * t) / period + phase
    const tail = hasHeavyTail && random() < 0.05 ? 3 : 1
    const hour = dayNoise ? 0.3 + 0.7 * (1 + Math.sin(angle)) : 1
    state = memory * state + Math.sqrt(1 - memory * memory + 0.001) * normal() * tail * hour
    const shape = amplitude * Math.sin(angle) + second * Math.sin(2 * angle + 1) + regime
    let value = shape + noise * 3 * state + noise * 0.2 * normal()
    if (isMultiplicative) value = Math.exp(value * 0.6)
    if (hasFloor) value = Math.max(value, isMultiplicative ? 0.3 : -0.5 * amplitude)
    values[t] = Math.round((value * scale) / decimals) * decimals
  }
  return { name, values }
}

/** Normally distributed numbers. */
export function normalOf(random: () => number): () => number {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
