/**
 * When known young garbage is collected, counted by the collections of this process that the module asks for.
 */
import { setImmediate as turnOver } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import {
  collectDiscarded,
  collectDiscardedBetweenMarkings,
  collectGarbage,
  noteDiscarded,
} from './garbage-collection.ts'
import { isMarking } from './heap-marking.ts'

type Gc = (how: Readonly<Record<string, string>>) => void
const exposed = globalThis as { gc?: Gc | undefined }
const { gc: before } = exposed
let collections = 0
beforeAll(() => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as Gc
  exposed.gc = (how) => {
    collections++
    gc(how)
  }
})
afterAll(() => {
  exposed.gc = before
})
beforeEach(() => {
  collections = 0
})
afterEach(restoreLimits)

it('is left to V8 while little memory is resident', () => {
  setLimit('memoryPressureBytes', Number.MAX_SAFE_INTEGER)
  noteDiscarded(limits.uncollectedBytes.value)
  collectDiscarded()
  expect(collections).toBe(0)
  setLimit('memoryPressureBytes', 1)
  collectDiscarded()
  expect(collections).toBe(0)
  noteDiscarded(limits.uncollectedBytes.value)
  collectDiscarded()
  expect(collections).toBe(1)
})

it('is collected each time there is enough of it, also just after such a collection', async () => {
  setLimit('memoryPressureBytes', 1)
  const end = collectGarbage({ releaseMemory: () => undefined, saveMemory: () => undefined })
  let due = 0
  for (; collections < 20 && due < 32; due++) {
    while (isMarking()) await turnOver()
    noteDiscarded(limits.uncollectedBytes.value)
    await collectDiscardedBetweenMarkings()
  }
  end()
  // V8 may have collected some of it before.
  expect(due).toBeLessThan(32)
})
