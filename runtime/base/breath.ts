/**
 * Breath: long work on the main thread goes in short turns. Who works asks between portions and is let go on at once
 * while the turn is young, else in the next turn of the event loop, after whatever came in has been seen to. All
 * who share one breath share its turns, so many of them hold up the others no longer than one.
 */

/** Settles when work may go on. */
export type Breath = () => Promise<void>

/** `turnMs` is how long work may last without letting others pass; `monotonic` tells ms. */
export function createBreath(monotonic: () => number, turnMs: number): Breath {
  let begunAt = 0
  /** Settles when the turn that is under way is over. */
  let turn: Promise<void> | undefined
  return async () => {
    while (turn !== undefined) {
      if (monotonic() - begunAt < turnMs) return
      await turn
    }
    begunAt = monotonic()
    turn = new Promise((resolve) => {
      setImmediate(() => {
        turn = undefined
        resolve()
      })
    })
  }
}
