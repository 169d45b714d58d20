/**
 * When a quiet process gives memory back: decided here on figures that the test makes up, since real collections depend
 * on the machine.
 */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createMemoryCheck, type Holding } from './garbage-collection.ts'

const base = 30_000_000

function site() {
  const state = { bytes: base, live: base, share: 0, collections: 0, released: [] as Holding[] }
  const look = createMemoryCheck({
    collect() {
      state.collections++
      state.bytes = state.live
    },
    release: (what) => void state.released.push(what),
    residentBytes: () => state.bytes,
    busyShare: () => state.share,
  })
  return { state, look }
}

it('collects once it is quiet and there is enough to gain', () => {
  const { state, look } = site()
  look()
  state.bytes += limits.memoryExcessBytes.value
  state.share = 0.6
  look()
  expect(state).toMatchObject({ collections: 0, released: [] })
  state.share = 0
  look()
  look()
  expect(state).toMatchObject({ collections: 1, bytes: base, released: ['caches'] })
})

it('gives back what is free beside a light load, once in two minutes', () => {
  const { state, look } = site()
  state.share = 0.4
  look()
  expect(state.released).toEqual([])
  state.bytes += limits.memoryExcessBytes.value
  for (let i = 0; i < 121; i++) look()
  expect(state).toMatchObject({ collections: 0, released: ['free', 'free'] })
})

it('leaves alone what has grown for good', () => {
  const { state, look } = site()
  state.live = base + 2 * limits.memoryExcessBytes.value
  state.bytes = state.live
  look()
  look()
  expect(state.collections).toBe(1)
})

it('notices growth from the lowest point, which V8 may reach on its own', () => {
  const { state, look } = site()
  state.bytes = base - limits.memoryExcessBytes.value
  look()
  state.live = state.bytes
  state.bytes = base
  look()
  expect(state.collections).toBe(1)
})

it('does nothing in a process that cannot collect', () => {
  let bytes = base
  const released: Holding[] = []
  const look = createMemoryCheck({
    collect: undefined,
    release: (what) => void released.push(what),
    residentBytes: () => bytes,
    busyShare: () => 0,
  })
  bytes *= 4
  look()
  expect(released).toEqual([])
})

it('lets two minutes pass between collections', () => {
  const { state, look } = site()
  for (let i = 0; i < 121; i++) {
    state.bytes = base + limits.memoryExcessBytes.value
    look()
  }
  expect(state.collections).toBe(2)
})

it('lets twenty looks pass where there was a load since the last one', () => {
  const { state, look } = site()
  const lookOften = (looks: number): number => {
    for (let i = 0; i < looks; i++) {
      state.bytes = base + limits.memoryExcessBytes.value
      look()
    }
    return state.collections
  }
  expect(lookOften(2)).toBe(1)
  state.share = 0.5
  expect(lookOften(1)).toBe(1)
  state.share = 0
  expect(lookOften(19)).toBe(1)
  expect(lookOften(1)).toBe(2)
  expect(lookOften(100)).toBe(2)
})
