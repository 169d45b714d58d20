/**
 * When a quiet process gives memory back: decided here on figures that the test makes up, since real collections depend
 * on the machine.
 */
import { expect, it } from 'vitest'
import { limits } from './limits.ts'
import { createLook } from './quiet-collection.ts'

const base = 30_000_000

function site() {
  const state = { bytes: base, live: base, share: 0, collections: 0 }
  const look = createLook({
    collect() {
      state.collections++
      state.bytes = state.live
    },
    residentBytes: () => state.bytes,
    busyShare: () => state.share,
  })
  return { state, look }
}

it('collects once it is quiet and there is enough to gain', () => {
  const { state, look } = site()
  look()
  state.bytes += limits.memoryExcessBytes.value
  state.share = 0.5
  look()
  expect(state.collections).toBe(0)
  state.share = 0
  look()
  look()
  expect(state).toMatchObject({ collections: 1, bytes: base })
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
  const look = createLook({ collect: undefined, residentBytes: () => bytes, busyShare: () => 0 })
  bytes *= 4
  expect(look).not.toThrow()
})

it('lets two minutes pass between collections', () => {
  const { state, look } = site()
  for (let i = 0; i < 121; i++) {
    state.bytes = base + limits.memoryExcessBytes.value
    look()
  }
  expect(state.collections).toBe(2)
})
