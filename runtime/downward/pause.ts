/**
 * Pauses that end early: when what is waited for comes, or when the part that waits is closed. After that there are none.
 */
import { limits } from '#base/limits/limits.ts'

export interface Pauses {
  /** Settles after `ms`, or earlier. */
  rest(ms: number): Promise<void>
  /** Ends the pauses that last now. */
  wake(): void
  /** Ends all pauses for good, and waits for what paused, though not for others that do not answer. */
  close(running: Promise<unknown>): Promise<void>
  isClosed(): boolean
}

export function createPauses(): Pauses {
  const ends = new Set<() => void>()
  let isClosed = false
  const wake = (): void => {
    for (const end of [...ends]) end()
  }
  return Object.freeze({
    rest: (ms) =>
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
    wake,
    async close(running) {
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
  } satisfies Pauses)
}
