/**
 * Three mechanisms shared by all connections. `Flow` counts bytes of frames on their way to disk; above a
 * limit no connection is read, so that TCP applies backpressure. `ReadingTurn` limits the time for reading
 * messages in one turn of the event loop. `createTurnEnd` runs actions at the end of a turn, to send the
 * turn's output together.
 */

export interface Flow {
  add(bytes: number): void
  remove(bytes: number): void
  isFull(): boolean
  /** Calls back once when half of the capacity is free; an action added several times is called once. */
  whenOpen(action: () => void): void
}

export function createFlow(bytesMax: number): Flow {
  let bytes = 0
  let waiting = new Set<() => void>()
  return Object.freeze({
    add(count) {
      bytes += count
    },
    remove(count) {
      bytes -= count
      if (waiting.size === 0 || bytes > bytesMax / 2) return
      const actions = waiting
      waiting = new Set()
      for (const action of actions) action()
    },
    isFull: () => bytes > bytesMax,
    whenOpen(action) {
      waiting.add(action)
    },
  } satisfies Flow)
}

export interface ReadingTurn {
  /** True when reading has used up its share of this turn, so that other work runs first. */
  isSpent(): boolean
  /**
   * Calls back in a later turn with time left, in the order of the calls; an action added several times is
   * called once.
   */
  whenNext(action: () => void): void
}

/** `monotonic` returns ms. */
export function createReadingTurn(monotonic: () => number, turnMs: number): ReadingTurn {
  let begunAt: number | undefined
  let waiting = new Set<() => void>()
  const next = (): void => {
    begunAt = undefined
    const actions = [...waiting]
    waiting = new Set()
    for (const [at, action] of actions.entries()) {
      if (isSpent()) {
        // Connections that have not had a turn yet precede those that had one.
        waiting = new Set([...actions.slice(at), ...waiting])
        return
      }
      action()
    }
  }
  function isSpent(): boolean {
    if (begunAt !== undefined) return monotonic() - begunAt > turnMs
    begunAt = monotonic()
    setImmediate(next)
    return false
  }
  return Object.freeze({
    isSpent,
    whenNext(action) {
      waiting.add(action)
    },
  } satisfies ReadingTurn)
}

/** Collects actions and runs them together when the current turn of the event loop ends. */
export function createTurnEnd(): (action: () => void) => void {
  let actions: (() => void)[] = []
  const run = (): void => {
    const due = actions
    actions = []
    for (const action of due) action()
  }
  return (action) => {
    if (actions.length === 0) setImmediate(run)
    actions.push(action)
  }
}
