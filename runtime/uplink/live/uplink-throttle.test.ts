/**
 * Throttling of an uplink: one current value per entity and period, and the newest one in the end.
 */
import { expect, it } from 'vitest'
import { createThrottle } from './uplink-throttle.ts'

it('passes one value per period and reports the delayed ones when the period ends', () => {
  let now = 0
  const throttle = createThrottle(() => now, 10)
  const seen: string[] = []
  for (; now < 30_000; now += 1000) {
    for (const [id, since] of throttle.due()) seen.push(`${id} due at ${now} since ${since}`)
    if (now < 15_000 && !throttle.delays('a', now)) seen.push(`a live at ${now}`)
    if (now === 3000 && !throttle.delays('b', now)) seen.push(`b live at ${now}`)
  }
  expect(seen).toEqual([
    'a live at 0',
    'b live at 3000',
    'a due at 10000 since 1000',
    'a due at 20000 since 10000',
  ])
})

it('delays nothing unless configured', () => {
  const throttle = createThrottle(() => 0, undefined)
  expect([throttle.delays('a', 0), throttle.delays('a', 1)]).toEqual([false, false])
})
