/** The semaphore bounds concurrency, is fair, and releases its slot even if a task fails. */
import { expect, it } from 'vitest'
import { createSemaphore } from './semaphore.ts'

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

it('runs at most the given number of tasks at a time, in order of arrival', async () => {
  const exclusively = createSemaphore(2)
  let running = 0
  let most = 0
  const begun: number[] = []
  await Promise.all(
    [0, 1, 2, 3, 4].map((n) =>
      exclusively(async () => {
        begun.push(n)
        most = Math.max(most, ++running)
        await tick()
        running--
      }),
    ),
  )
  expect([most, begun]).toEqual([2, [0, 1, 2, 3, 4]])
})

it('starts a task synchronously when a slot is free', () => {
  let hasBegun = false
  void createSemaphore()(async () => {
    hasBegun = true
  })
  expect(hasBegun).toBe(true)
})

it('runs other jobs between the parts of a long job', async () => {
  const exclusively = createSemaphore()
  const order: string[] = []
  const job = async (name: string, parts: number): Promise<void> => {
    for (let part = 0; part < parts; part++) {
      await exclusively(async () => {
        order.push(name)
        await tick()
      })
    }
  }
  await Promise.all([job('long', 4), job('short', 1)])
  expect(order).toEqual(['long', 'short', 'long', 'long', 'long'])
})

it('runs the next task after one that fails', async () => {
  const exclusively = createSemaphore()
  const failing = exclusively(() => Promise.reject(new TypeError('no')))
  const next = exclusively(() => Promise.resolve('yes'))
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('yes')
  expect(await exclusively(() => Promise.resolve('again'))).toBe('again')
})
