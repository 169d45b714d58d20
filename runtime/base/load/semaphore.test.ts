/** Turns are bounded, in order, fair, and handed on whatever a task does. */
import { expect, it } from 'vitest'
import { createSemaphore } from './semaphore.ts'

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

it('runs so many at a time, in the order they came', async () => {
  const takeTurn = createSemaphore(2)
  let running = 0
  let most = 0
  const begun: number[] = []
  await Promise.all(
    [0, 1, 2, 3, 4].map((n) =>
      takeTurn(async () => {
        begun.push(n)
        most = Math.max(most, ++running)
        await tick()
        running--
      }),
    ),
  )
  expect([most, begun]).toEqual([2, [0, 1, 2, 3, 4]])
})

it('begins at once when it is free', () => {
  let hasBegun = false
  void createSemaphore()(async () => {
    hasBegun = true
  })
  expect(hasBegun).toBe(true)
})

it('lets others in between the parts of a long job', async () => {
  const takeTurn = createSemaphore()
  const order: string[] = []
  const job = async (name: string, parts: number): Promise<void> => {
    for (let part = 0; part < parts; part++) {
      await takeTurn(async () => {
        order.push(name)
        await tick()
      })
    }
  }
  await Promise.all([job('long', 4), job('short', 1)])
  expect(order).toEqual(['long', 'short', 'long', 'long', 'long'])
})

it('goes on after a task that fails', async () => {
  const takeTurn = createSemaphore()
  const failing = takeTurn(() => Promise.reject(new TypeError('no')))
  const next = takeTurn(() => Promise.resolve('yes'))
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('yes')
  expect(await takeTurn(() => Promise.resolve('again'))).toBe('again')
})
