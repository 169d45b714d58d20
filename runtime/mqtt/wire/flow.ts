/**
 * Three things all connections share: how many bytes of frames are on their way to disk, so that beyond a ceiling
 * nobody is read any more and TCP pushes back; how long messages are read in one turn of the event loop, because all
 * connections may have some at once; and the end of a turn, when what was written to a connection during it leaves in
 * one piece.
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

export interface ReadingTurn {
  /** Whether messages were read for so long that everything else has its turn first. */
  isSpent(): boolean
  /** Calls back once, in the order of asking, in the next turn that has room, however often the same action waits. */
  whenNext(action: () => void): void
}

/** `monotonic` tells ms. */
export function createReadingTurn(monotonic: () => number, turnMs: number): ReadingTurn {
  let begunAt: number | undefined
  let waiting = new Set<() => void>()
  const next = (): void => {
    begunAt = undefined
    const actions = [...waiting]
    waiting = new Set()
    for (const [at, action] of actions.entries()) {
      if (isSpent()) {
        // Who has not had a turn yet goes before those who had one.
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
