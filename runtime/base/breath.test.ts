/**
 * Work that breathes lets others pass, however many do it at once.
 */
import { expect, it } from 'vitest'
import { createBreath } from './breath.ts'

it('lets work of all who share it last no longer than a turn', async () => {
  let now = 0
  const breathe = createBreath(() => now, 4)
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
      await breathe()
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
