/**
 * Fits a seasonal ARIMA to a history by the method of Hannan and Rissanen. (1) The seasonal shape: Fourier
 * terms by ridge regression, and the medians of the rest by phase. (2) The innovations of the remainder by a
 * long autoregression. (3) 48 orders by least squares of one Gram matrix, chosen by the corrected Akaike
 * criterion. (4) The winner is refined once and made stationary and invertible. Pure; milliseconds for
 * thousands of values.
 */
import { autocovariances, autoregressionOf } from '#statistics/autocorrelation.ts'
import { medianOf } from '#statistics/median.ts'
import { solveRidge } from '#statistics/ridge-solution.ts'

export interface ArimaModel {
  /** Slots of the period; 0: no seasonal part. */
  readonly period: number
  /** The seasonal shape with the mean, by phase; one value without a period. */
  readonly shape: Float32Array
  /** 1: the remainder is differenced once. */
  readonly differences: 0 | 1
  readonly autoregressive: Float64Array
  readonly movingAverage: Float64Array
  readonly seasonalAutoregressive: number
  readonly seasonalMovingAverage: number
  /** Standard deviation of the innovations. */
  readonly deviation: number
}

export interface ArimaHistory {
  /** By slot, from the oldest; NaN is a missing value. */
  readonly values: Float64Array
  /** The slot number of the first value: phases are counted from slot 0. */
  readonly firstSlot: number
  readonly period?: number
}

const harmonicsMax = 6
const fourierRidge = 1e-3
/** Counts like so many periods in which a phase was as its neighbours. */
const phaseShrinkage = 2
const clipDeviations = 5
const orderRidge = 1e-6
/** The critical value of the KPSS statistic at 5 %. */
const kpssMax = 0.463
const autoregressiveMax = 3
const movingAverageMax = 2

/** Which regressors a candidate has: lagged values, lagged innovations, and either one period ago. */
interface Order {
  readonly p: number
  readonly q: number
  readonly seasonalP: number
  readonly seasonalQ: number
}

interface Fitted {
  readonly order: Order
  readonly coefficients: Float64Array
  readonly rss: number
  readonly criterion: number
}

export function fitSeasonalArima({ values, firstSlot, period = 0 }: ArimaHistory): ArimaModel {
  const shape = seasonalShape({ values, firstSlot, period })
  const phases = shape.length
  const remainder = clipped(
    values.map((value, i) => (Number.isNaN(value) ? 0 : value - shape[(firstSlot + i) % phases]!)),
  )
  const differences = kpss(remainder) > kpssMax ? 1 : 0
  const series = differences === 0 ? remainder : remainder.slice(1).map((value, i) => value - remainder[i]!)
  const first = longInnovations(series, period)
  const orders = candidateOrders(series.length > 3 * period ? period : 0)
  const winner = bestOf(orders, { series, innovations: first, period })
  const refined = bestOf([winner.order], {
    series,
    innovations: innovationsOf(series, winner, period),
    period,
  })
  return modelOf(refined, { period, shape, differences, count: series.length })
}

/** Mean and Fourier terms by phase. */
function seasonalShape({ values, firstSlot, period = 0 }: ArimaHistory): Float32Array {
  const harmonics = Math.min(harmonicsMax, Math.floor((period - 1) / 2))
  const columns = 1 + 2 * Math.max(0, harmonics)
  const phases = Math.max(1, period)
  const basis = Array.from({ length: phases }, (_, phase) =>
    Float64Array.from({ length: columns }, (_, column) => {
      const angle = (2 * Math.PI * Math.ceil(column / 2) * phase) / phases
      return column === 0 ? 1 : column % 2 === 1 ? Math.sin(angle) : Math.cos(angle)
    }),
  )
  const gram = Array.from({ length: columns }, () => new Float64Array(columns))
  const product = new Float64Array(columns)
  let mean = 0
  let count = 0
  for (const value of values) {
    if (Number.isNaN(value)) continue
    count++
    mean += (value - mean) / count
  }
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i]!)) continue
    const row = basis[(firstSlot + i) % phases]!
    for (let a = 0; a < columns; a++) {
      product[a]! += row[a]! * (values[i]! - mean)
      for (let b = 0; b < columns; b++) gram[a]![b]! += row[a]! * row[b]!
    }
  }
  const solution = solveRidge(gram, product, fourierRidge)
  const smooth = Float32Array.from(basis, (row) =>
    row.reduce((sum, one, a) => sum + one * solution[a]!, mean),
  )
  return period > 0 ? withPhases(smooth, values, firstSlot) : smooth
}

/** Adds the median of each phase's rest, drawn towards 0 the more the fewer periods there are. */
function withPhases(smooth: Float32Array, values: Float64Array, firstSlot: number): Float32Array {
  const period = smooth.length
  const rests = Array.from(smooth, (): number[] => [])
  for (let i = 0; i < values.length; i++) {
    const phase = (firstSlot + i) % period
    if (!Number.isNaN(values[i]!)) rests[phase]!.push(values[i]! - smooth[phase]!)
  }
  return smooth.map((one, phase) => {
    const rest = Float64Array.from(rests[phase]!)
    return rest.length === 0 ? one : one + (medianOf(rest) * rest.length) / (rest.length + phaseShrinkage)
  })
}

/** Limits outliers, so that they do not decide the orders. */
function clipped(remainder: Float64Array): Float64Array {
  const limit = clipDeviations * 1.4826 * medianOf(remainder.map(Math.abs))
  return limit > 0 ? remainder.map((value) => Math.max(-limit, Math.min(limit, value))) : remainder
}

/** The KPSS statistic of stationarity around a level. */
function kpss(series: Float64Array): number {
  const count = series.length
  const lags = Math.trunc(4 * (count / 100) ** 0.25)
  const mean = series.reduce((sum, value) => sum + value, 0) / count
  const covariances = autocovariances(series, lags)
  let longRun = covariances[0]!
  for (let lag = 1; lag <= lags; lag++) longRun += 2 * (1 - lag / (lags + 1)) * covariances[lag]!
  let partial = 0
  let sum = 0
  for (const value of series) {
    partial += value - mean
    sum += partial ** 2
  }
  return longRun > 0 ? sum / (count ** 2 * longRun) : 0
}

/** Innovations of a long autoregression; zero where it lacks values. */
function longInnovations(series: Float64Array, period: number): Float64Array {
  const usual = Math.min(40, Math.ceil(Math.log(series.length) ** 2))
  const order = Math.min(
    period > 0 && period <= 48 ? Math.max(usual, period + 1) : usual,
    Math.floor(series.length / 4),
  )
  const coefficients = autoregressionOf(autocovariances(series, order), order)
  return series.map((value, i) => {
    if (i < order) return 0
    let rest = value
    for (let j = 0; j < order; j++) rest -= coefficients[j]! * series[i - 1 - j]!
    return rest
  })
}

function candidateOrders(period: number): Order[] {
  const seasonal = period > 0 ? [0, 1] : [0]
  const orders: Order[] = []
  for (let p = 0; p <= autoregressiveMax; p++)
    for (let q = 0; q <= movingAverageMax; q++)
      for (const seasonalP of seasonal)
        for (const seasonalQ of seasonal) orders.push({ p, q, seasonalP, seasonalQ })
  return orders
}

interface Regression {
  readonly series: Float64Array
  readonly innovations: Float64Array
  readonly period: number
}

/** Columns of the Gram matrix: lagged values, lagged innovations, value and innovation a period ago. */
const seasonalColumn = autoregressiveMax + movingAverageMax
const columnCount = seasonalColumn + 2

const columnsOf = ({ p, q, seasonalP, seasonalQ }: Order): number[] => [
  ...Array.from({ length: p }, (_, i) => i),
  ...Array.from({ length: q }, (_, i) => autoregressiveMax + i),
  ...(seasonalP === 1 ? [seasonalColumn] : []),
  ...(seasonalQ === 1 ? [seasonalColumn + 1] : []),
]

/** Regresses on all orders from one Gram matrix; of criteria within 2 the smaller model wins. */
function bestOf(orders: readonly Order[], regression: Regression): Fitted {
  const { gram, product, square, count } = gramOf(regression)
  const fitted = orders.map((order): Fitted => {
    const columns = columnsOf(order)
    const sub = columns.map((a) => Float64Array.from(columns, (b) => gram[a]![b]!))
    const right = Float64Array.from(columns, (a) => product[a]!)
    const coefficients = solveRidge(sub, right, orderRidge * (square / count))
    const rss = Math.max(
      columns.reduce((sum, _, i) => sum - coefficients[i]! * right[i]!, square),
      square * 1e-12,
      Number.MIN_VALUE,
    )
    const k = columns.length + 1
    const criterion = count * Math.log(rss / count) + 2 * k + (2 * k * (k + 1)) / (count - k - 1)
    return { order, coefficients, rss, criterion }
  })
  const least = Math.min(...fitted.map(({ criterion }) => criterion))
  const near = fitted.filter(({ criterion }) => criterion <= least + 2)
  const smallest = Math.min(...near.map(({ coefficients }) => coefficients.length))
  return near
    .filter(({ coefficients }) => coefficients.length === smallest)
    .reduce((a, b) => (b.criterion < a.criterion ? b : a))
}

function gramOf({ series, innovations, period }: Regression) {
  const gram = Array.from({ length: columnCount }, () => new Float64Array(columnCount))
  const product = new Float64Array(columnCount)
  const row = new Float64Array(columnCount)
  const seasonalLag = series.length > 3 * period ? period : 0
  const start = Math.max(autoregressiveMax, seasonalLag)
  let square = 0
  for (let t = start; t < series.length; t++) {
    for (let i = 0; i < autoregressiveMax; i++) row[i] = series[t - 1 - i]!
    for (let i = 0; i < movingAverageMax; i++) row[autoregressiveMax + i] = innovations[t - 1 - i]!
    row[seasonalColumn] = seasonalLag > 0 ? series[t - seasonalLag]! : 0
    row[seasonalColumn + 1] = seasonalLag > 0 ? innovations[t - seasonalLag]! : 0
    square += series[t]! ** 2
    for (let a = 0; a < columnCount; a++) {
      product[a]! += row[a]! * series[t]!
      for (let b = 0; b <= a; b++) gram[a]![b]! += row[a]! * row[b]!
    }
  }
  for (let a = 0; a < columnCount; a++) for (let b = 0; b < a; b++) gram[b]![a] = gram[a]![b]!
  return { gram, product, square, count: series.length - start }
}

interface Parts {
  readonly autoregressive: Float64Array
  readonly movingAverage: Float64Array
  readonly seasonalAutoregressive: number
  readonly seasonalMovingAverage: number
}

/** The coefficients by kind. */
function partsOf({ order, coefficients }: Fitted): Parts {
  const { p, q, seasonalP, seasonalQ } = order
  return {
    autoregressive: coefficients.slice(0, p),
    movingAverage: coefficients.slice(p, p + q),
    seasonalAutoregressive: seasonalP === 1 ? coefficients[p + q]! : 0,
    seasonalMovingAverage: seasonalQ === 1 ? coefficients[p + q + seasonalP]! : 0,
  }
}

/** The innovations by the fitted coefficients. */
function innovationsOf(series: Float64Array, fitted: Fitted, period: number): Float64Array {
  const { autoregressive, movingAverage, seasonalAutoregressive, seasonalMovingAverage } = admissible(
    partsOf(fitted),
    period,
  )
  const innovations = new Float64Array(series.length)
  for (let t = 0; t < series.length; t++) {
    let rest = series[t]!
    for (let i = 0; i < autoregressive.length && i < t; i++) rest -= autoregressive[i]! * series[t - 1 - i]!
    for (let i = 0; i < movingAverage.length && i < t; i++)
      rest -= movingAverage[i]! * innovations[t - 1 - i]!
    if (period > 0 && t >= period)
      rest -= seasonalAutoregressive * series[t - period]! + seasonalMovingAverage * innovations[t - period]!
    innovations[t] = rest
  }
  return innovations
}

/** Shrinks both polynomials until their roots lie outside the unit circle. */
function admissible(parts: Parts, period: number): Parts {
  const [autoregressive, seasonalAutoregressive] = shrunken(
    parts.autoregressive,
    parts.seasonalAutoregressive,
    period,
  )
  // 1 + theta z is invertible where the autoregression of -theta is stationary.
  const [negated, seasonal] = shrunken(
    parts.movingAverage.map((one) => -one),
    -parts.seasonalMovingAverage,
    period,
  )
  return {
    autoregressive,
    seasonalAutoregressive,
    movingAverage: negated.map((one) => -one),
    seasonalMovingAverage: -seasonal,
  }
}

function shrunken(lags: Float64Array, seasonal: number, period: number): [Float64Array, number] {
  let now = lags
  let nowSeasonal = seasonal
  for (let tries = 0; tries < 100 && !isStationary(now, nowSeasonal, period); tries++) {
    now = now.map((one, i) => one * 0.95 ** (i + 1))
    nowSeasonal *= 0.95
  }
  return [now, nowSeasonal]
}

/** The recursion of Schur and Cohn: all reflection coefficients are below 1. */
function isStationary(lags: Float64Array, seasonal: number, period: number): boolean {
  let coefficients: Float64Array = new Float64Array(
    seasonal === 0 ? lags.length : Math.max(lags.length, period),
  )
  coefficients.set(lags)
  if (seasonal !== 0) coefficients[period - 1]! += seasonal
  while (coefficients.length > 0) {
    const last = coefficients.length - 1
    const reflection = coefficients[last]!
    if (!(Math.abs(reflection) < 0.9999)) return false
    const next = new Float64Array(last)
    for (let i = 0; i < last; i++)
      next[i] = (coefficients[i]! + reflection * coefficients[last - 1 - i]!) / (1 - reflection ** 2)
    coefficients = next
  }
  return true
}

interface Frame {
  readonly period: number
  readonly shape: Float32Array
  readonly differences: 0 | 1
  readonly count: number
}

function modelOf(fitted: Fitted, { period, shape, differences, count }: Frame): ArimaModel {
  const used = count - period
  const deviation = Math.sqrt(fitted.rss / Math.max(1, used - fitted.coefficients.length))
  return { period, shape, differences, deviation, ...admissible(partsOf(fitted), period) }
}
