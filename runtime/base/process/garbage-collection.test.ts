/**
 * When an idle process returns memory to the system. The test supplies the figures, since real collections
 * depend on the machine.
 */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import {
  createMemoryCheck,
  createPressureCheck,
  createYoungCheck,
  nextCheckMs,
} from './garbage-collection.ts'

const base = 30_000_000

function site() {
  const state = { bytes: base, live: base, share: 0, collections: 0, released: 0 }
  const check = createMemoryCheck({
    collect() {
      state.collections++
      state.bytes = state.live
    },
    release: () => void state.released++,
    residentBytes: () => state.bytes,
    busyShare: () => state.share,
  })
  /** A check of a process that has grown, and those of the two collections that it starts. */
  const checkGrown = (): void => {
    const before = state.collections
    state.bytes = base + limits.memoryExcessBytes.value
    check()
    if (state.collections === before) return
    state.bytes = state.live
    for (let i = 0; i < 3; i++) check()
  }
  return { state, check, checkGrown }
}

it('collects twice once the process is idle and enough memory can be gained', () => {
  const { state, check } = site()
  check()
  state.bytes += limits.memoryExcessBytes.value
  state.share = 0.6
  check()
  expect(state).toMatchObject({ collections: 0, released: 0 })
  // On a slow machine, the timers of an idle gateway alone take as much.
  state.share = 0.09
  for (let i = 0; i < 6; i++) check()
  expect(state).toMatchObject({ collections: 2, bytes: base, released: 2 })
})

it('collects a second time although the first collection took time', () => {
  const { state, check } = site()
  state.bytes += limits.memoryExcessBytes.value
  check()
  state.share = 0.2
  check()
  state.share = 0
  check()
  expect(state).toMatchObject({ collections: 2, released: 1 })
})

it('leaves out the second collection if a load follows the first', () => {
  const { state, check } = site()
  state.bytes += limits.memoryExcessBytes.value
  check()
  check()
  state.share = 0.6
  check()
  state.share = 0
  check()
  expect(state).toMatchObject({ collections: 1, released: 1 })
})

it('stops collecting when the live memory itself has grown', () => {
  const { state, check } = site()
  state.live = base + 2 * limits.memoryExcessBytes.value
  state.bytes = state.live
  for (let i = 0; i < 6; i++) check()
  expect(state.collections).toBe(2)
})

it('measures growth from the lowest point, which V8 may reach by itself', () => {
  const { state, check } = site()
  state.bytes = base - limits.memoryExcessBytes.value
  check()
  state.live = state.bytes
  state.bytes = base
  check()
  expect(state.collections).toBe(1)
})

it('does nothing in a process without --expose-gc', () => {
  let bytes = base
  let released = 0
  const check = createMemoryCheck({
    collect: undefined,
    release: () => void released++,
    residentBytes: () => bytes,
    busyShare: () => 0,
  })
  bytes *= 4
  check()
  expect(released).toBe(0)
})

it('waits two minutes between collections', () => {
  const { state, checkGrown } = site()
  for (let i = 0; i < 121; i++) checkGrown()
  expect(state.collections).toBe(4)
})

it('waits only twenty checks after a load', () => {
  const { state, checkGrown } = site()
  const checkOften = (checks: number): number => {
    for (let i = 0; i < checks; i++) checkGrown()
    return state.collections
  }
  expect(checkOften(2)).toBe(2)
  state.share = 0.5
  expect(checkOften(1)).toBe(2)
  state.share = 0
  expect(checkOften(19)).toBe(2)
  expect(checkOften(1)).toBe(4)
  expect(checkOften(100)).toBe(4)
})

it('collects under load while too much memory is resident, and idle only while memory grows', () => {
  const { state } = site()
  let workedMs = 0
  const check = createPressureCheck({
    collect: () => state.collections++,
    residentBytes: () => state.bytes,
    workedMs: () => workedMs,
  })
  const collectionsWhile = (worked: number): number => {
    const before = state.collections
    for (let i = 0; i < 100; i++) {
      workedMs += worked
      check()
    }
    return state.collections - before
  }
  state.bytes = limits.memoryPressureBytes.value - 1
  expect(collectionsWhile(100)).toBe(0)
  state.bytes += 1
  // 10 s of work without a pause: one at once, then one per 4 s. Half busy: one per second of work.
  expect(collectionsWhile(100)).toBe(3)
  expect(collectionsWhile(50)).toBeGreaterThanOrEqual(4)
  expect(collectionsWhile(0)).toBe(0)
  state.bytes += limits.pressureGrowthBytes.value - 1
  expect(collectionsWhile(0)).toBe(0)
  state.bytes += 1
  expect(collectionsWhile(0)).toBe(1)
})

it('collects what a burst of work left after the burst', () => {
  let bytes = limits.memoryPressureBytes.value
  let workedMs = 0
  let collections = 0
  const check = createPressureCheck({
    collect: () => collections++,
    residentBytes: () => bytes,
    workedMs: () => workedMs,
  })
  check()
  bytes += limits.pressureGrowthBytes.value
  workedMs += 90
  check()
  expect(collections).toBe(0)
  workedMs += 10
  check()
  expect(collections).toBe(1)
})

it('measures growth from the lowest point since the last collection', () => {
  let bytes = limits.memoryPressureBytes.value + limits.pressureGrowthBytes.value
  let collections = 0
  const check = createPressureCheck({
    collect: () => collections++,
    residentBytes: () => bytes,
    workedMs: () => 0,
  })
  check()
  expect(collections).toBe(1)
  // It grows again before the checks after a collection are over.
  bytes -= limits.pressureGrowthBytes.value
  check()
  bytes += limits.pressureGrowthBytes.value
  for (let i = 0; i < 20; i++) check()
  expect(collections).toBe(2)
})

it('makes V8 save memory while too much is resident', () => {
  const state = { bytes: limits.memoryThriftBytes.value - 1, calls: [] as boolean[] }
  const check = createYoungCheck({
    residentBytes: () => state.bytes,
    youngBytes: () => 0,
    setGrowth: () => {},
    setThrift: (isThrifty) => void state.calls.push(isThrifty),
  })
  const callsWith = (bytes: number): readonly boolean[] => {
    state.bytes = bytes
    check()
    check()
    return state.calls
  }
  expect(callsWith(state.bytes)).toEqual([])
  expect(callsWith(limits.memoryThriftBytes.value)).toEqual([true])
  expect(callsWith(limits.memoryThriftBytes.value - 1)).toEqual([true, false])
})

it('keeps the young generation small while too much memory is resident', () => {
  const state = { bytes: 0, young: 0, mayGrow: true }
  const check = createYoungCheck({
    residentBytes: () => state.bytes,
    youngBytes: () => state.young,
    setGrowth(mayGrow) {
      state.mayGrow = mayGrow
    },
    setThrift: () => {},
  })
  const mayGrowWith = (bytes: number, young: number): boolean => {
    Object.assign(state, { bytes, young })
    check()
    return state.mayGrow
  }
  const [crowded, large] = [limits.memoryPressureBytes.value, limits.youngPressureBytes.value]
  expect(mayGrowWith(crowded - 1, 4 * large)).toBe(true)
  expect(mayGrowWith(crowded, large)).toBe(false)
  expect(mayGrowWith(crowded, large - 1)).toBe(true)
  expect(mayGrowWith(crowded, large)).toBe(false)
  expect(mayGrowWith(crowded - 1, large)).toBe(true)
})

it('checks more often the closer resident memory is to its limit', () => {
  const limit = limits.memoryPressureBytes.value
  const times = [0, limit / 2, limit * 0.9, limit, 2 * limit].map(nextCheckMs)
  expect(times).toEqual(times.toSorted((a, b) => b - a))
  expect([times[0], times[3], times[4]]).toEqual([500, 50, 50])
})
