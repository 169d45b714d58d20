/**
 * Long loops yield to the event loop, however many run at once.
 */
import { stat } from 'node:fs'
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createPacing, createYield, inNextTurn } from './yielding.ts'

it('bounds the work of all loops that share it to one time slice per turn', async () => {
  let now = 0
  const yieldIfDue = createYield(() => now, 4)
  let isOver = false
  /** Units of work in each turn of the event loop. */
  const turns = [0]
  const countTurn = (): void => {
    if (isOver) return
    turns.push(0)
    setImmediate(countTurn)
  }
  setImmediate(countTurn)
  const work = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) {
      await yieldIfDue()
      now++
      turns[turns.length - 1]!++
    }
  }
  await Promise.all([work(), work(), work()])
  isOver = true
  expect(turns.reduce((sum, worked) => sum + worked, 0)).toBe(60)
  expect(turns.length).toBeGreaterThanOrEqual(8)
  // A slice ends with the portion that exceeds it, and two slices may fall into one turn of the loop.
  expect(Math.max(...turns)).toBeLessThanOrEqual(8)
})

it('spreads tasks that arrive together over several turns in order', async () => {
  let now = 0
  const pace = createPacing(() => now, 4)
  const done: number[] = []
  let turn = 0
  /** How many tasks ran in each turn of the event loop. */
  const ran = new Map<number, number>()
  const count = (): void => {
    turn++
    if (done.length < 30) setImmediate(count)
  }
  setImmediate(count)
  await new Promise<void>((resolve) => {
    const arrive = (i: number): void =>
      pace(() => {
        ran.set(turn, (ran.get(turn) ?? 0) + 1)
        // Most work of a request happens in promises that its start creates.
        void Promise.resolve().then(() => {
          now++
          if (done.push(i) === 30) resolve()
        })
      })
    for (let i = 0; i < 30; i++) setImmediate(arrive, i)
  })
  expect(done).toEqual(Array.from({ length: 30 }, (_, i) => i))
  // Two slices may fall into one turn of the loop.
  expect(Math.max(...ran.values())).toBeLessThanOrEqual(8)
})

it('gives long work that other long work would precede a turn of its own', async () => {
  const turnOf = (): number => performance.nodeTiming.uvMetricsInfo.loopCount
  const work = (): Promise<number> =>
    new Promise((resolve) => {
      inNextTurn(() => {
        const until = performance.now() + 2 * limits.usedTurnMs.value
        while (performance.now() < until);
        resolve(turnOf())
      })
    })
  const turns = await Promise.all([work(), work(), work()])
  expect(new Set(turns).size).toBe(3)
})

it('resumes long work that a socket starts in a later turn', async () => {
  const turnOf = (): number => performance.nodeTiming.uvMetricsInfo.loopCount
  const [started, resumed] = await new Promise<readonly number[]>((resolve) => {
    stat('/', () => {
      const turn = turnOf()
      inNextTurn(() => resolve([turn, turnOf()]))
    })
  })
  expect(resumed).toBeGreaterThan(started!)
})
