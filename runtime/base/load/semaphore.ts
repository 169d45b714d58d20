/**
 * Turns: so many tasks run at the same time, the others wait in line. A task that comes back for another turn stands
 * behind those that wait already, so that long jobs made of short tasks share fairly; one that asks for a turn while it has
 * the only one, and waits for it, waits for ever. How long the line may get is bounded by whoever asks.
 */

/** Runs a task when it is its turn, and settles as it does. */
export type Semaphore = <T>(task: () => Promise<T>) => Promise<T>

/** @param most tasks at the same time; left out, one after the other. */
export function createSemaphore(most = 1): Semaphore {
  let running = 0
  const line: (() => void)[] = []
  return async (task) => {
    if (running < most) running++
    else await new Promise<void>((resolve) => line.push(resolve))
    try {
      return await task()
    } finally {
      const next = line.shift()
      // The turn is handed on.
      if (next !== undefined) next()
      else running--
    }
  }
}
