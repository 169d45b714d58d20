/**
 * The faults that the evaluation of fault detection injects into a series, one at a time: their classes,
 * severities and values. Pure; the random numbers are passed in.
 */

export interface InjectedFault {
  /** Class and severity, as the table names them. */
  readonly name: string
  /** Classes of findings that name it right. */
  readonly classes: readonly string[]
  /** Samples that it covers, as multiples of D, or a fixed number. */
  readonly length: (day: number) => number
  /** The value reported instead, NaN if none is. */
  readonly value: (at: FaultPoint) => number
  /** True if values beyond the limits are what is injected. */
  readonly isUnlimited?: boolean
  /** Slots by which the times are late or early. */
  readonly timeShift?: number
}

export interface FaultPoint {
  readonly value: number
  /** Value of the sample before the fault. */
  readonly last: number
  /** Index in the fault, and its length. */
  readonly index: number
  readonly length: number
  readonly random: () => number
  /** Robust standard deviation of the history, and of the error of a one-step prediction. */
  readonly sigma: number
  readonly step: number
  readonly limits: { readonly min: number; readonly max: number }
}

/** Standard normal, by Box and Muller. */
const normal = (random: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())

const once = (samples: number) => (): number => samples
const days =
  (factor: number) =>
  (day: number): number =>
    factor * day

const spikes = [6, 12, 25].map(
  (size): InjectedFault => ({
    name: `spike ${size} s`,
    classes: ['spike'],
    length: once(1),
    value: ({ value, step }) => value + size * step,
  }),
)
const noises = [3, 6, 12].map(
  (size): InjectedFault => ({
    name: `noise ${size} s`,
    classes: ['noise'],
    length: days(1),
    value: ({ value, step, random }) => value + size * step * normal(random),
  }),
)
const biases = [1, 2, 4].map(
  (size): InjectedFault => ({
    name: `bias ${size} sigma`,
    classes: ['bias'],
    length: days(2),
    value: ({ value, sigma }) => value + size * sigma,
  }),
)
const drifts = [2, 4].map(
  (size): InjectedFault => ({
    name: `drift ${size} sigma`,
    classes: ['drift'],
    length: days(4),
    value: ({ value, sigma, index, length }) => value + (size * sigma * (index + 1)) / length,
  }),
)

export const injectedFaults: readonly InjectedFault[] = [
  { name: 'dropout', classes: ['dropout'], length: days(1), value: () => Number.NaN },
  {
    name: 'range',
    classes: ['range'],
    length: once(3),
    value: ({ limits: { min, max } }) => max + 0.2 * (max - min),
    isUnlimited: true,
  },
  { name: 'sentinel', classes: ['sentinel'], length: once(3), value: () => -999, isUnlimited: true },
  { name: 'clock', classes: ['clock'], length: once(3), value: ({ value }) => value, timeShift: -5 },
  { name: 'stuck at last', classes: ['stuck'], length: days(1), value: ({ last }) => last },
  { name: 'stuck at zero', classes: ['stuck'], length: days(1), value: () => 0 },
  ...spikes,
  ...noises,
  ...biases,
  ...drifts,
  { name: 'gain 1.5', classes: ['gain'], length: days(2), value: ({ value }) => 1.5 * value },
  {
    name: 'low variance',
    classes: ['low-variance'],
    length: days(2),
    value: ({ last, step, random }) => last + 0.05 * step * normal(random),
  },
]

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

/** 1.4826 times the median absolute deviation: the standard deviation of a normal distribution. */
export function robustDeviation(values: readonly number[]): number {
  const middle = median(values)
  return 1.4826 * median(values.map((value) => Math.abs(value - middle)))
}

/** Errors of one-step predictions by a second-order autoregression around the daily profile. */
export function predictionErrors(values: Float64Array, slotsPerDay: number): number[] {
  const sums = new Float64Array(slotsPerDay)
  const counts = new Float64Array(slotsPerDay)
  values.forEach((value, slot) => {
    if (Number.isNaN(value)) return
    sums[slot % slotsPerDay]! += value
    counts[slot % slotsPerDay]! += 1
  })
  const rest = values.map((value, slot) => value - sums[slot % slotsPerDay]! / counts[slot % slotsPerDay]!)
  const triples = Array.from(rest.keys()).flatMap((slot) => {
    const triple = [rest[slot]!, rest[slot - 1] ?? Number.NaN, rest[slot - 2] ?? Number.NaN] as const
    return triple.some(Number.isNaN) ? [] : [triple]
  })
  const moment = (i: 0 | 1 | 2, j: 0 | 1 | 2): number =>
    triples.reduce((sum, triple) => sum + triple[i] * triple[j], 0)
  const [a, b, c, d, e] = [moment(1, 1), moment(1, 2), moment(2, 2), moment(0, 1), moment(0, 2)]
  const determinant = a * c - b * b
  const [first, second] = [(d * c - e * b) / determinant, (e * a - d * b) / determinant]
  return triples.map(([value, one, two]) => value - first * one - second * two)
}
