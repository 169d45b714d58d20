/**
 * Two things all connections share: how many bytes of frames are on their way to disk, so that beyond a ceiling
 * nobody is read any more and TCP pushes back; and the end of a turn of the event loop, when what was written to a
 * connection during the turn leaves in one piece.
 */

export interface Flow {
  add(bytes: number): void
  remove(bytes: number): void
  isFull(): boolean
  /** Calls back once when half of the room is free again, however often the same action waits. */
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

/** Collects actions and runs them together when the current turn of the event loop is over. */
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
