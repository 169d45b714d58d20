/**
 * Throttling of an uplink: one value per entity and period goes live, and the newest one in the end.
 */
import { expect, it } from 'vitest'
import { createThrottle } from './uplink-throttle.ts'

it('lets one value per period pass and tells what waits when its time has come', () => {
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

it('holds nothing where there is none', () => {
  const throttle = createThrottle(() => 0, undefined)
  expect([throttle.delays('a', 0), throttle.delays('a', 1)]).toEqual([false, false])
})
