/**
 * Runs work that takes all that has changed, such as a save, one run at a time. Calls during a run share the
 * next one, which begins after it, so that it includes what changed before them.
 */

export function createSharedRuns(work: () => Promise<void>) {
  let running: Promise<void> | undefined
  let queued: Promise<void> | undefined

  function begin(): Promise<void> {
    queued = undefined
    running = work().finally(() => {
      running = undefined
    })
    return running
  }

  return Object.freeze({
    /** Resolves after a run that began no earlier than this call. @throws the error of that run. */
    now(): Promise<void> {
      if (running === undefined) return begin()
      queued ??= running.then(begin, begin)
      return queued
    },
    /** The run in progress. */
    running: (): Promise<void> | undefined => running,
    /** The run that was requested last, unless it has ended. */
    last: (): Promise<void> | undefined => queued ?? running,
  })
}
