/**
 * When V8 marks its heap, seen by the collections of the test's own process, and that long work waits for the
 * end of it.
 */
import { setImmediate as turnOver } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { inNextTurn, nextTurn } from '#base/load/yielding.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { isMarking, observeCollections, recordMarking } from './heap-marking.ts'

let end: () => void
let collections = 0
beforeEach(() => {
  end = observeCollections(() => {
    collections++
  })
})
afterEach(() => {
  end()
  restoreLimits()
})

/** Turns of the event loop so far. */
const loopCount = (): number => performance.nodeTiming.uvMetricsInfo.loopCount

/** V8 starts to mark if 64 MiB more than before are in use outside its heap. */
async function startMarking(): Promise<void> {
  while (!isMarking()) {
    new ArrayBuffer(66 * 1024 * 1024).transfer(0)
    for (let turns = 0; turns < 4 && !isMarking(); turns++) await turnOver()
  }
}

it('reports the start and the end of a marking', async () => {
  expect(isMarking()).toBe(false)
  await startMarking()
  while (isMarking()) await turnOver()
  expect(isMarking()).toBe(false)
})

it('reports that V8 collected by itself', async () => {
  const before = collections
  for (let garbage: unknown; collections === before; await turnOver())
    garbage = [garbage, Array(1000).fill(0)]
})

it('knows from a record whether V8 marks at this moment', async () => {
  const before = recordMarking()
  await turnOver()
  expect(before()).toBe(isMarking())
  while (isMarking()) await turnOver()
  let hasStarted = false
  while (!hasStarted) {
    const started = recordMarking()
    new ArrayBuffer(66 * 1024 * 1024).transfer(0)
    hasStarted = started()
  }
  expect(isMarking()).toBe(false)
  while (!isMarking()) await turnOver()
  const ended = recordMarking()
  while (isMarking()) await turnOver()
  expect(ended()).toBe(false)
})

it('keeps little memory for records that survive collections', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as NonNullable<typeof gc>
  for (let i = 0; i < 100; i++) {
    const record = recordMarking()
    for (let turns = 0; turns < 2; turns++) {
      collect({ type: 'minor' })
      await turnOver()
    }
    record()
  }
  const before = process.memoryUsage.rss()
  for (let i = 0; i < 300; i++) collect({ type: 'minor' })
  expect(process.memoryUsage.rss() - before).toBeLessThan(40 * 1024 * 1024)
})

it('resumes long work after the marking if memory is short', async () => {
  setLimit('memoryPressureBytes', 1)
  setLimit('markingWaitMs', 600_000)
  await startMarking()
  await nextTurn()
  expect(isMarking()).toBe(false)
})

it('resumes long work in the next turns if there is enough memory', async () => {
  setLimit('memoryPressureBytes', Number.MAX_SAFE_INTEGER)
  setLimit('markingWaitMs', 600_000)
  await startMarking()
  const begun = loopCount()
  await nextTurn()
  expect(loopCount() - begun).toBeLessThanOrEqual(2)
})

it('resumes long works that waited for the marking in turns of their own', async () => {
  setLimit('memoryPressureBytes', 1)
  setLimit('markingWaitMs', 600_000)
  await startMarking()
  const work = (): Promise<number> =>
    new Promise((resolve) => {
      inNextTurn(() => {
        const until = performance.now() + 2 * limits.usedTurnMs.value
        while (performance.now() < until);
        resolve(loopCount())
      })
    })
  const turns = await Promise.all([work(), work(), work()])
  expect(new Set(turns).size).toBe(3)
})
