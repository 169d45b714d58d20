/**
 * Runs the writes of a component to its broker: changes of a short time are written together, and a failed
 * write is repeated after pauses that grow.
 */
import type { Limit } from '#base/limits/limit.ts'

export interface WriteLoopPorts {
  /** Writes some of what waits. Returns the reason if the broker did not do it. */
  readonly write: () => Promise<string | undefined>
  readonly hasMore: () => boolean
  /** Called with the reason of the first failure in succession. */
  readonly failed: (reason: string) => void
  readonly monotonic: () => number
  /** How long changes are gathered. */
  readonly gatherMs: Limit
  /** The longest pause after a failure. */
  readonly retryMs: Limit
  /** Whether writing takes at most a fifth of the time; changes that arrive meanwhile are gathered. */
  readonly isResting: () => boolean
}

/** Rest after a write, as a multiple of its duration. */
const restPerWrite = 4

export function createWriteLoop(ports: WriteLoopPorts) {
  const { write, hasMore, failed, monotonic, gatherMs, retryMs, isResting } = ports
  let writing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let failure: string | undefined
  let isClosed = false

  function wake(delay: number): void {
    if (isClosed || writing !== undefined || timer !== undefined) return
    timer = setTimeout(() => {
      timer = undefined
      const begunAt = monotonic()
      writing = run().finally(() => {
        writing = undefined
        const restMs = isResting() ? restPerWrite * (monotonic() - begunAt) : 0
        if (hasMore()) wake(failures === 0 ? restMs : pauseMs())
      })
    }, delay)
  }

  const pauseMs = (): number => Math.min(retryMs.value, gatherMs.value * 2 ** failures)

  async function run(): Promise<void> {
    failure = await write()
    failures = failure === undefined ? 0 : failures + 1
    if (failure !== undefined && failures === 1) failed(failure)
  }

  return Object.freeze({
    /** Something waits: writes it after `gatherMs`, unless a write is due or in progress. */
    wake: () => wake(gatherMs.value),
    /** The reason why nothing can be written; undefined while writing works. */
    failure: () => failure,
    /** Resolves when no write is in progress. */
    async close(): Promise<void> {
      isClosed = true
      clearTimeout(timer)
      await writing
    },
  })
}
