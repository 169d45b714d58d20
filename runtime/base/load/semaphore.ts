/**
 * A fair semaphore: a fixed number of tasks run concurrently, the others wait in order of arrival. A job of
 * several short tasks queues again for each task, so that other jobs run in between. A task that awaits
 * another task of the same semaphore may deadlock. The caller bounds the length of the queue.
 */

/** Runs a task when a slot is free, and settles as the task does. */
export type Semaphore = <T>(task: () => Promise<T>) => Promise<T>

/** @param most concurrent tasks; 1 by default, which makes it a mutex. */
export function createSemaphore(most = 1): Semaphore {
  let running = 0
  const queue: (() => void)[] = []
  return async (task) => {
    if (running < most) running++
    else await new Promise<void>((resolve) => queue.push(resolve))
    try {
      return await task()
    } finally {
      const next = queue.shift()
      // The slot passes to the next task, so `running` stays unchanged.
      if (next !== undefined) next()
      else running--
    }
  }
}
