/**
 * Pauses that can be ended early, by `wake` or by `close`. After `close`, pauses end at once.
 */
import { limits } from '#base/limits/limits.ts'

export type Pauses = ReturnType<typeof createPauses>

export function createPauses() {
  const ends = new Set<() => void>()
  let isClosed = false
  const wake = (): void => {
    for (const end of [...ends]) end()
  }
  return Object.freeze({
    /** Resolves after `ms`, or earlier. */
    sleep: (ms: number) =>
      new Promise<void>((resolve) => {
        if (isClosed) return resolve()
        const end = (): void => {
          clearTimeout(timer)
          ends.delete(end)
          resolve()
        }
        const timer = setTimeout(end, ms)
        ends.add(end)
      }),
    /** Ends the current pauses. */
    wake,
    /** Ends all pauses for good, and waits for the paused work, but not for unresponsive brokers. */
    async close(running: Promise<unknown>): Promise<void> {
      isClosed = true
      wake()
      let timer: NodeJS.Timeout | undefined
      const soon = new Promise((resolve) => {
        timer = setTimeout(resolve, limits.downwardCloseMs.value)
      })
      await Promise.race([running, soon])
      clearTimeout(timer)
    },
    isClosed: () => isClosed,
  })
}
