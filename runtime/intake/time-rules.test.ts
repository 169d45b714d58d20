/** Which readings become observations, and with which time. */
import { expect, it } from 'vitest'
import type { Frame, Reading } from '#contract'
import { hasOwnTime, judgeReading } from './time-rules.ts'

const receivedAt = Date.UTC(2026, 2, 1, 12)
const day = 86_400_000
const frame: Frame = { topic: 't', payload: Buffer.of(), receivedAt, retained: false, transport: 'mqtt' }
const retained: Frame = { ...frame, retained: true, transport: 'bridge-in' }
const reading: Reading = { device: 'd', field: 'f', value: 1 }
const timed = (observedAt: number): Reading => ({ ...reading, observedAt, timeSource: 'device' })

it('uses the time of the device, otherwise the time of reception', () => {
  expect(judgeReading(timed(receivedAt - 5), frame)).toEqual({
    observedAt: receivedAt - 5,
    timeSource: 'device',
  })
  expect(judgeReading(reading, frame)).toEqual({ observedAt: receivedAt, timeSource: 'gateway' })
  const relative: Reading = { ...reading, observedAt: receivedAt - 5000, timeSource: 'gateway' }
  expect(judgeReading(relative, frame)).toEqual({ observedAt: receivedAt - 5000, timeSource: 'gateway' })
})

it('accepts times within the window, both ends included', () => {
  const floor = Date.UTC(2000, 0, 1)
  expect(judgeReading(timed(floor), frame)).toMatchObject({ observedAt: floor })
  expect(judgeReading(timed(floor - 1), frame)).toEqual({
    refused: 'time-window',
    reason: 'the time 1999-12-31T23:59:59.999Z is outside the accepted window',
  })
  expect(judgeReading(timed(receivedAt + day), frame)).toMatchObject({ observedAt: receivedAt + day })
  expect(judgeReading(timed(receivedAt + day + 1), frame)).toMatchObject({ refused: 'time-window' })
  for (const time of [0, -1e15, 1e16, Number.NaN, Number.POSITIVE_INFINITY])
    expect(judgeReading(timed(time), frame)).toMatchObject({ refused: 'time-window' })
})

it('does not use the reception time of a clock that is not set', () => {
  const years = (count: number) => timed(receivedAt + count * 365 * day)
  expect(judgeReading(years(3), frame, true)).toMatchObject({ refused: 'time-window' })
  expect(judgeReading(years(3), frame, false)).toMatchObject({ observedAt: receivedAt + 3 * 365 * day })
  expect(judgeReading(years(20), frame, false)).toMatchObject({ refused: 'time-window' })
})

it('creates no observation from a retained frame without a device time', () => {
  expect(judgeReading(reading, retained)).toMatchObject({ refused: 'retained' })
  const relative: Reading = { ...reading, observedAt: receivedAt - 5000, timeSource: 'gateway' }
  expect(judgeReading(relative, retained)).toMatchObject({ refused: 'retained' })
  expect(judgeReading(timed(receivedAt - day), retained)).toEqual({
    observedAt: receivedAt - day,
    timeSource: 'device',
  })
})

it('refuses an invalid value, whatever its time', () => {
  for (const value of [Number.NaN, Number.NEGATIVE_INFINITY, null, 'nan', 'unavailable'])
    expect(judgeReading({ ...timed(receivedAt), value }, frame)).toMatchObject({ refused: 'value' })
})

it('recognizes times that a redelivery does not change', () => {
  expect(hasOwnTime(timed(1))).toBe(true)
  expect(hasOwnTime({ ...reading, observedAt: 1, timeSource: 'network' })).toBe(true)
  expect(hasOwnTime({ ...reading, observedAt: 1, timeSource: 'gateway' })).toBe(false)
  expect(hasOwnTime({ ...reading, observedAt: 1 })).toBe(false)
  expect(hasOwnTime(reading)).toBe(false)
})
