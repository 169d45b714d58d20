/**
 * Cooperative yielding: long loops on the main thread call `await yieldIfDue()` between portions. It returns
 * at once until the time slice is used up; then it resumes in a later turn of the event loop, after pending
 * I/O. All loops that share one function share its time slice, so that many of them block the event loop no
 * longer than one.
 */

import { setTimeout as sleep, setImmediate as turnOver } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import { isMarkingShortOfMemory } from '#base/process/heap-marking.ts'

/** The last turn of the event loop that had long work. */
let usedTurn = -1
/** When the long work of that turn began, ms. */
let begunAt = 0

/** Further turns that long work waits for one without other long work. */
const furtherTurnsMax = 3

/**
 * Runs long work after the sockets of this turn of the event loop were read. If other long work used the
 * turn, it waits for one of the next.
 */
export function inUnusedTurn(task: () => void, further = furtherTurnsMax): void {
  setImmediate(() => {
    const [turn, now] = [performance.nodeTiming.uvMetricsInfo.loopCount, performance.now()]
    if (turn !== usedTurn) begunAt = now
    usedTurn = turn
    if (further > 0 && now - begunAt >= limits.usedTurnMs.value) inUnusedTurn(task, further - 1)
    else task()
  })
}

/**
 * Resumes long work in a later turn of the event loop. If V8 marks while memory is short, it first waits for
 * the end of that, at most `markingWaitMs`. The first immediate is necessary because one that is set while a
 * socket is read runs in the turn that reads it.
 */
export async function nextTurn(): Promise<void> {
  await turnOver()
  const until = performance.now() + limits.markingWaitMs.value
  while (performance.now() < until && isMarkingShortOfMemory()) await sleep(checkMs)
  await new Promise<void>((resolve) => inUnusedTurn(resolve))
}

/** Time between two checks whether V8 still marks. */
const checkMs = 5

/** Runs the next portion of long work, as `nextTurn`. */
export const inNextTurn = (task: () => void): void => void nextTurn().then(task)

/** Resolves when the caller may continue. */
export type YieldIfDue = () => Promise<void>

/** `turnMs` is the time slice: how long work may block the event loop; `monotonic` returns ms. */
export function createYield(monotonic: () => number, turnMs: number): YieldIfDue {
  let sliceBegunAt = 0
  /** Resolves when the current turn of the event loop is over. */
  let turn: Promise<void> | undefined
  return async () => {
    while (turn !== undefined) {
      if (monotonic() - sliceBegunAt < turnMs) return
      await turn
    }
    sliceBegunAt = monotonic()
    turn = nextTurn().then(() => {
      turn = undefined
    })
  }
}

/** Runs a task now or in a later turn of the event loop. */
export type Pacing = (task: () => void) => void

/**
 * Spreads tasks that arrive together over several turns of the event loop, in order. In each turn it starts
 * tasks for `turnMs`, including the work of their promises; the others wait for the next turn. The caller
 * bounds their number.
 */
export function createPacing(monotonic: () => number, turnMs: number): Pacing {
  /** When the first task of this turn started. */
  let firstAt: number | undefined
  let waiting = 0

  function isOver(): boolean {
    if (firstAt !== undefined) return monotonic() - firstAt >= turnMs
    firstAt = monotonic()
    setImmediate(() => {
      firstAt = undefined
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
