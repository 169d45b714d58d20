/** The choice of the approach, period detection and the fit of the seasonal ARIMA, on seeded series. */
import { describe, expect, it } from 'vitest'
import { normalDeviates } from '#test/kit/normal-deviates.ts'
import { type ApproachTask, chooseApproach } from './approach.ts'
import { detectPeriod } from './period.ts'
import { createSeasonalArima } from './seasonal-arima.ts'
import { fitSeasonalArima } from './seasonal-arima-fit.ts'

/** A daily course of this many slots plus noise. */
function periodic(count: number, period: number, seed: number): Float64Array {
  const next = normalDeviates(seed)
  return Float64Array.from(
    { length: count },
    (_, i) => 20 + 5 * Math.sin((2 * Math.PI * i) / period) + 3 * Number(i % period < period / 4) + next(),
  )
}

/** The remainder of a mixed process of order 1. */
function mixedProcess({ count, phi, theta }: { count: number; phi: number; theta: number }): Float64Array {
  const next = normalDeviates(7)
  let value = 0
  let innovation = 0
  return Float64Array.from({ length: count }, () => {
    const now = next()
    value = phi * value + now + theta * innovation
    innovation = now
    return value
  })
}

const taskOf = (values: Float64Array): ApproachTask => ({ values, firstSlot: 0, isArimaForced: false })

describe('period detection', () => {
  it.each([6, 24, 96, 288])('finds a period of %i slots in noise', (period) => {
    expect(detectPeriod(periodic(Math.max(400, 4 * period), period, 1))).toBe(period)
  })

  it('finds none in noise, in a random walk and in a constant', () => {
    const next = normalDeviates(2)
    let level = 0
    expect(detectPeriod(Float64Array.from({ length: 1000 }, next))).toBeUndefined()
    expect(detectPeriod(Float64Array.from({ length: 1000 }, () => (level += next())))).toBeUndefined()
    expect(detectPeriod(new Float64Array(1000).fill(3))).toBeUndefined()
  })

  it('prefers a period near that of a day', () => {
    const values = periodic(1000, 24, 3)
    expect(detectPeriod(values)).toBe(24)
    expect(detectPeriod(values, [48])).toBe(48)
  })
})

describe('the fit of the seasonal ARIMA', () => {
  it('recovers the coefficients of an autoregression', () => {
    const next = normalDeviates(11)
    let one = 0
    let two = 0
    const values = Float64Array.from({ length: 2000 }, () => {
      const value = 0.6 * one + 0.25 * two + next()
      two = one
      one = value
      return value
    })
    const { autoregressive, movingAverage, deviation } = fitSeasonalArima({ values, firstSlot: 0 })
    expect(autoregressive[0]).toBeCloseTo(0.6, 1)
    expect(autoregressive[1]).toBeCloseTo(0.25, 1)
    expect(movingAverage).toHaveLength(0)
    expect(deviation).toBeCloseTo(1, 1)
  })

  it('predicts a mixed process as well as its true coefficients', () => {
    const values = mixedProcess({ count: 4000, phi: 0.7, theta: 0.4 })
    const model = fitSeasonalArima({ values: values.slice(0, 2000), firstSlot: 0 })
    expect(meanSquareOf(model, values)).toBeLessThan(1.05)
  })

  it('predicts a seasonal series by its shape and the period before', () => {
    const values = periodic(1500, 24, 13)
    const model = fitSeasonalArima({ values: values.slice(0, 700), firstSlot: 0, period: 24 })
    // Noise alone is 1; the shape without a period has a mean square of 15.
    expect(meanSquareOf(model, values)).toBeLessThan(1.25)
  })

  it('stays stationary on a series that explodes', () => {
    const values = Float64Array.from({ length: 400 }, (_, i) => 1.02 ** i)
    const arima = createSeasonalArima(fitSeasonalArima({ values, firstSlot: 0 }), 0)
    for (let i = 0; i < 5000; i++) arima.take(undefined, true)
    expect(Number.isFinite(arima.predict().expected)).toBe(true)
  })

  it('predicts through a gap with growing uncertainty, and returns to the value', () => {
    const values = mixedProcess({ count: 2000, phi: 0.8, theta: 0 })
    const arima = createSeasonalArima(fitSeasonalArima({ values, firstSlot: 0 }), 0)
    for (const value of values) arima.take(value, true)
    const before = arima.predict().deviation
    for (let i = 0; i < 20; i++) arima.take(undefined, true)
    // The deviation of the process itself is 1 / sqrt(1 - 0.64).
    expect(arima.predict().deviation / before).toBeCloseTo(1 / 0.6, 0)
    expect(Math.abs(arima.predict().expected)).toBeLessThan(0.3)
    arima.take(1, true)
    expect(arima.predict().deviation).toBeCloseTo(before, 1)
  })
})

/** The mean squared error of one-step predictions beyond the fitted part. */
function meanSquareOf(model: ReturnType<typeof fitSeasonalArima>, values: Float64Array): number {
  const arima = createSeasonalArima(model, 0)
  const from = Math.floor(values.length / 2)
  let sum = 0
  for (const [i, value] of values.entries()) {
    if (i >= from) sum += (value - arima.predict().expected) ** 2
    arima.take(value, true)
  }
  return sum / (values.length - from)
}

describe('the choice of the approach', () => {
  it('is ARIMA for a periodic history of three periods and 200 values, else Dirichlet states', () => {
    expect(chooseApproach(taskOf(periodic(400, 24, 4))).approach).toBe('seasonal-arima')
    expect(chooseApproach(taskOf(periodic(199, 24, 4))).approach).toBe('dirichlet-process')
    expect(chooseApproach({ ...taskOf(periodic(400, 150, 4)), periodSlots: 150 }).approach).toBe(
      'dirichlet-process',
    )
    const next = normalDeviates(5)
    const noise = Float64Array.from({ length: 1000 }, next)
    expect(chooseApproach(taskOf(noise)).approach).toBe('dirichlet-process')
    expect(chooseApproach({ ...taskOf(noise), isArimaForced: true }).model?.period).toBe(0)
  })

  it('uses a known period without detection', () => {
    const next = normalDeviates(6)
    const noise = Float64Array.from({ length: 600 }, next)
    expect(chooseApproach({ ...taskOf(noise), periodSlots: 48 }).model?.period).toBe(48)
  })

  it('bridges gaps, and gives up below four fifths of values', () => {
    const withGaps = (every: number) =>
      periodic(600, 24, 8).map((value, i) => (i % every === 0 ? Number.NaN : value))
    expect(chooseApproach(taskOf(withGaps(7))).model?.period).toBe(24)
    expect(chooseApproach(taskOf(withGaps(3))).approach).toBe('dirichlet-process')
  })
})
