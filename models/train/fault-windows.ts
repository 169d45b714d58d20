/**
 * Writes the windows that the fault model learns from: windows of healthy series, and the same with one injected fault.
 * `node models/train/fault-windows.ts --data DIR --out DIR --seed N`; fault.py reads what it writes.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type StreamScale, streamScaleOf } from '#plugins/faults/models/stream-scale.ts'
import { featureCount, windowLength, writeFeatures } from '#plugins/faults/models/window-features.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { beijingSeries, madeUpSeries, moteSeries, normalOf, type Series } from './series.ts'

/** The classes of the model, in the order of its outputs. */
const classes = ['ok', 'stuck', 'low-variance', 'noise', 'spike', 'bias'] as const
type FaultClass = (typeof classes)[number]

const { values: options } = parseArgs({
  options: {
    data: { type: 'string' },
    out: { type: 'string' },
    seed: { type: 'string', default: '1' },
    windows: { type: 'string', default: '600000' },
  },
})
const { data: folder, out } = options
if (folder === undefined || out === undefined) throw new TypeError('--data DIR and --out DIR are required')
const random = createSeededRandom(Number(options.seed))
const normal = normalOf(random)
/** Windows that share a scale. */
const windowsPerScale = 10
const total = Number(options.windows)

interface Source extends Series {
  readonly group: number
}

const beijing = beijingSeries(folder).map((one): Source => ({ ...one, group: 0 }))
const motes = moteSeries(folder).map((one): Source => ({ ...one, group: 1 }))
const madeUp = madeUpSeries(600, Number(options.seed)).map((one): Source => ({ ...one, group: 2 }))

const features = new Float32Array(total * featureCount)
const labels = new Uint8Array(total)
const groups = new Uint8Array(total)
let written = 0
while (written < total) {
  const share = random()
  const source = pick(share < 0.6 ? beijing : share < 0.68 ? motes : madeUp)
  const stretch = stretchOf(source.values)
  if (stretch === undefined) continue
  for (let i = 0; i < windowsPerScale && written < total; i++) {
    const window = windowOf(source.values, stretch)
    if (window === undefined) continue
    const kind: FaultClass = random() < 0.6 ? 'ok' : pick(classes.slice(1))
    if (!inject(window, kind)) continue
    writeFeatures(window, window.scale, { target: features, offset: written * featureCount })
    labels[written] = classes.indexOf(kind)
    groups[written] = source.group
    written++
  }
}
mkdirSync(out, { recursive: true })
writeFileSync(join(out, 'fault-features.f32'), features)
writeFileSync(join(out, 'fault-labels.u8'), labels)
writeFileSync(join(out, 'fault-groups.u8'), groups)
writeVector()
writeFileSync(
  join(out, 'fault-shape.json'),
  JSON.stringify({ windows: total, features: featureCount, classes }),
)

/** A window with its features, by which a test notices that the features are no longer those of the training. */
function writeVector(): void {
  const [{ values }] = madeUpSeries(1, 5) as [Series]
  const history = [...values.subarray(0, 120)].map((value) => Math.round(value * 1e6) / 1e6)
  const window = {
    values: history.slice(-windowLength),
    slots: history.slice(-windowLength).map((_, i) => i + (i > 20 ? 3 : 0)),
  }
  const vector = new Float32Array(featureCount)
  writeFeatures(window, streamScaleOf(history)!, { target: vector, offset: 0 })
  const text = JSON.stringify({ history, slots: window.slots, features: [...vector] })
  writeFileSync(join(import.meta.dirname, 'fault-vector.json'), `${text}\n`)
}

function pick<T>(from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!
}

interface Window {
  readonly values: Float64Array
  readonly slots: Float64Array
  readonly scale: StreamScale
  /** What the last value would be rounded to. */
  readonly resolution: number
}

interface Stretch {
  /** The windows are in these slots, behind the history of the scale. */
  readonly from: number
  readonly until: number
  readonly scale: StreamScale
}

/** The scale of a random length of history, and the slots behind it. */
function stretchOf(series: Float64Array): Stretch | undefined {
  const end = 96 + Math.floor(random() * (series.length - 96 - 2 * windowLength))
  const length = Math.floor(80 * (series.length / 80) ** random())
  const scale = streamScaleOf(series.subarray(Math.max(0, end - length), end))
  return scale === undefined ? undefined : { from: end, until: Math.min(series.length, end + 400), scale }
}

/** A window at a random place of a stretch. */
function windowOf(series: Float64Array, { from, until, scale }: Stretch): Window | undefined {
  const values = new Float64Array(windowLength)
  const slots = new Float64Array(windowLength)
  let place = windowLength
  let slot = from + windowLength + Math.floor(random() * (until - from - windowLength))
  for (; slot > 0 && place > 0; slot--) {
    const value = series[slot - 1]!
    if (!Number.isFinite(value)) continue
    place--
    values[place] = value
    slots[place] = slot
  }
  return place > 0 ? undefined : { values, slots, scale, resolution: resolutionOf(values) }
}

/** The largest of 1, 0.1, 0.01 and 0.001 that all values are multiples of. */
function resolutionOf(values: Float64Array): number {
  const fits = (unit: number): boolean =>
    values.every((value) => Math.abs(value / unit - Math.round(value / unit)) < 1e-6)
  return [10, 1, 0.1, 0.01].find(fits) ?? 0.001
}

/** Changes the window by a fault that lasts until its last value. Returns false for a fault that would not be visible. */
function inject(window: Window, kind: FaultClass): boolean {
  const { values, scale, resolution } = window
  const sign = random() < 0.7 ? 1 : -1
  const last = windowLength - 1
  const rounded = (value: number): number => Math.round(value / resolution) * resolution
  switch (kind) {
    case 'ok':
      return true
    case 'stuck': {
      const run = 4 + Math.floor(random() * (random() < 0.5 ? 8 : windowLength - 5))
      const value = random() < 0.2 ? 0 : values[windowLength - run]!
      values.fill(value, windowLength - run)
      return run > scale.longestRun
    }
    case 'low-variance': {
      const run = 10 + Math.floor(random() * (windowLength - 12))
      const middle = values[windowLength - run]!
      const size = scale.step * 0.06 * random()
      if (size < resolution) return false
      for (let i = windowLength - run; i < windowLength; i++) values[i] = rounded(middle + size * normal())
      return true
    }
    case 'noise': {
      const run = 3 + Math.floor(random() * (windowLength - 8))
      const size = scale.step * (1.5 + 10 * random() ** 2)
      for (let i = windowLength - run; i < windowLength; i++)
        values[i] = rounded(values[i]! + size * normal())
      return Math.abs(values[last]! - values[last - 1]!) > scale.step
    }
    case 'spike': {
      const at = last - 1
      values[at] = rounded(values[at]! + sign * scale.step * (4 + 21 * random() ** 2))
      return true
    }
    case 'bias': {
      const run = 2 + Math.floor(random() * (windowLength - 6))
      const isGain = random() < 0.3
      const size = sign * scale.spread * (1 + 3 * random())
      for (let i = windowLength - run; i < windowLength; i++) {
        values[i] = rounded(isGain ? values[i]! * 1.5 : values[i]! + size)
      }
      return !isGain || Math.abs(values[last]! / 3) > scale.spread
    }
  }
}
