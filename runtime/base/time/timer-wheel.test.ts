/** Deadlines of a timer wheel on a clock that the test moves. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTimerWheel } from './timer-wheel.ts'

let now = 0
const met: string[] = []
const clock = { monotonic: () => now }
const wheel = () =>
  createTimerWheel<string>({ clock, due: (item) => met.push(`${item} ${now}`) }, { tickMs: 100, slots: 8 })

beforeEach(() => {
  now = 0
  met.length = 0
  vi.useFakeTimers()
})
afterEach(() => vi.useRealTimers())

function pass(ms: number): void {
  for (let passed = 0; passed < ms; passed += 100) {
    now += 100
    vi.advanceTimersByTime(100)
  }
}

it('meets each deadline once, within a tick', () => {
  const timers = wheel()
  timers.set('a', 250)
  timers.set('b', 300)
  pass(1000)
  expect(met).toEqual(['a 300', 'b 300'])
  expect(timers.size()).toBe(0)
})

it('replaces and deletes deadlines', () => {
  const timers = wheel()
  timers.set('a', 200)
  timers.set('a', 500)
  timers.set('b', 300)
  timers.delete('b')
  pass(1000)
  expect(met).toEqual(['a 500'])
})

it('meets a deadline once that was put off, brought forward or set again', () => {
  const timers = wheel()
  timers.set('a', 200)
  for (const at of [600, 1500, 400]) timers.set('a', at)
  timers.set('b', 300)
  timers.delete('b')
  timers.set('b', 900)
  expect([timers.deadline('a'), timers.deadline('b'), timers.deadline('c')]).toEqual([400, 900, undefined])
  pass(500)
  timers.set('a', 700)
  pass(3000)
  expect(met).toEqual(['a 400', 'a 700', 'b 900'])
  expect(timers.size()).toBe(0)
})

it('keeps deadlines beyond one turn, and meets past ones at the next tick', () => {
  const timers = wheel()
  timers.set('far', 2500)
  pass(400)
  timers.set('past', 100)
  pass(3000)
  expect(met).toEqual(['past 500', 'far 2500'])
})

it('meets all deadlines after a pause that is longer than a turn', () => {
  const timers = wheel()
  for (const at of [100, 400, 700, 1900]) timers.set(`at ${at}`, at)
  now = 2000
  vi.advanceTimersByTime(100)
  expect(met.sort()).toEqual(['at 100 2000', 'at 1900 2000', 'at 400 2000', 'at 700 2000'])
})
