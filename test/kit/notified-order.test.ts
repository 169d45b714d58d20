/** What the judge of notified states accepts: repeats after an end of the sender, and no other step back. */
import { expect, it } from 'vitest'
import { createNotifiedOrder } from './notified-order.ts'

/** Feeds numbers of one entity; 'end' is an end of the sender. Returns those that were refused. */
function refused(...steps: readonly (number | 'end')[]): number[] {
  let ends = 0
  const order = createNotifiedOrder<number>({ isBack: (last, state) => state < last, ends: () => ends })
  return steps.filter((step): step is number => {
    if (step === 'end') ends++
    return step !== 'end' && order.take('a', step) !== undefined
  })
}

it('accepts what grows and what arrives twice in a row', () => {
  expect(refused(1, 2, 2, 3)).toEqual([])
})

it('refuses a step back while the sender has not ended', () => {
  expect(refused(1, 2, 1)).toEqual([1])
  expect(refused('end', 1, 2, 1)).toEqual([1])
})

it('accepts after an end of the sender a repeat from an earlier state on, in the same order', () => {
  expect(refused(1, 2, 3, 'end', 1, 2, 3, 4)).toEqual([])
  expect(refused(1, 2, 3, 'end', 2, 'end', 1, 2, 3, 4)).toEqual([])
})

it('refuses a second repeat after one end, and a repeat in another order', () => {
  expect(refused(1, 2, 3, 'end', 1, 2, 1)).toEqual([1])
  expect(refused(1, 2, 3, 'end', 2, 1, 3)).toEqual([1])
})

it('refuses within a repeat a state that was never seen and is older than the newest', () => {
  expect(refused(1, 3, 5, 'end', 1, 2, 3)).toEqual([2])
})
