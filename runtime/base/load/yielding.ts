/**
 * YieldIfDue: long work on the main thread goes in short turns. Who works asks between portions and is let go on at once
 * while the turn is young, else in the next turn of the event loop, after whatever came in has been seen to. All
 * who share one breath share its turns, so many of them hold up the others no longer than one.
 */

/** Settles when work may go on. */
export type YieldIfDue = () => Promise<void>

/** `turnMs` is how long work may last without letting others pass; `monotonic` tells ms. */
export function createYield(monotonic: () => number, turnMs: number): YieldIfDue {
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

/** Runs a task now or in a later turn of the event loop. */
export type Pacing = (task: () => void) => void

/**
 * Spreads tasks that arrive at the same moment over several turns of the event loop, in their order. In each turn it starts tasks for
 * `turnMs`, what their promises do included; the others wait for the next turn. How many may wait is bounded by the caller.
 */
export function createPacing(monotonic: () => number, turnMs: number): Pacing {
  /** When the first task of this turn began. */
  let begunAt: number | undefined
  let waiting = 0

  function isOver(): boolean {
    if (begunAt !== undefined) return monotonic() - begunAt >= turnMs
    begunAt = monotonic()
    setImmediate(() => {
      begunAt = undefined
    })
    return false
  }

  return (task) => {
    const retry = (): void => {
      if (isOver()) {
        setImmediate(retry)
        return
      }
      waiting--
      task()
    }
    if (waiting === 0 && !isOver()) task()
    else {
      waiting++
      setImmediate(retry)
    }
  }
}
