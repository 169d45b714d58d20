/**
 * Work that breathes lets others pass, however many do it at once.
 */
import { expect, it } from 'vitest'
import { createPacing, createYield } from './yielding.ts'

it('lets work of all who share it last no longer than a turn', async () => {
  let now = 0
  const yieldIfDue = createYield(() => now, 4)
  let isOver = false
  /** What was worked in each turn of the event loop. */
  const turns = [0]
  const look = (): void => {
    if (isOver) return
    turns.push(0)
    setImmediate(look)
  }
  setImmediate(look)
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
  // A turn ends with the portion that makes it too long, and two may meet in one of the loop.
  expect(Math.max(...turns)).toBeLessThanOrEqual(8)
})

it('spreads tasks that arrive together over several turns and keeps their order', async () => {
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
        // The work of a request happens in promises that its start leaves behind.
        void Promise.resolve().then(() => {
          now++
          if (done.push(i) === 30) resolve()
        })
      })
    for (let i = 0; i < 30; i++) setImmediate(arrive, i)
  })
  expect(done).toEqual(Array.from({ length: 30 }, (_, i) => i))
  // Two turns of pacing may meet in one turn of the loop.
  expect(Math.max(...ran.values())).toBeLessThanOrEqual(8)
})
