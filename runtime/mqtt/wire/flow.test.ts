/**
 * Connections share reading time fairly: a connection with much to read lets the others have their turn. The
 * test controls the clock, which advances only while something is read.
 */
import { expect, it } from 'vitest'
import { createReadingTurn } from './flow.ts'

it('lets each connection read in turn, however much the first ones have', async () => {
  let now = 0
  const turn = createReadingTurn(() => now, 2)
  const read: string[] = []
  const left = new Map([...'abcde'].map((name) => [name, 3]))
  const reading = (name: string) => (): void => {
    const link = resumes.get(name)!
    while (left.get(name)! > 0) {
      if (turn.isSpent()) {
        turn.whenNext(link)
        return
      }
      read.push(name)
      left.set(name, left.get(name)! - 1)
      now += 3
    }
  }
  const resumes = new Map([...left.keys()].map((name) => [name, reading(name)]))
  for (const resume of resumes.values()) resume()
  for (let i = 0; i < 40 && read.length < 15; i++) await new Promise((resolve) => setImmediate(resolve))
  // The first connection waits again before the others have waited at all.
  expect(read.join('')).toBe('aabcdeabcdebcde')
})
