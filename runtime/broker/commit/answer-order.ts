/**
 * Answers works in queue order, across groups: a message that is forwarded to its subscribers when it is
 * answered must not overtake one that was stored before it. Answers leave in slices, so that thousands of
 * acknowledgements never block the event loop. An answer that throws does not affect the others.
 */

import { limits } from '#base/limits/limits.ts'
import type { GatewayError } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Work } from './work-queue.ts'

/** The works of one group, and the errors of those that were refused. */
interface Answered {
  readonly works: readonly Work[]
  readonly refused: ReadonlyMap<Work, GatewayError>
}

/** @param ports `onAnswered` is called whenever no answer is pending any more. */
export function createAnswerOrder(ports: { log: Log; metrics: Metrics; onAnswered: () => void }) {
  const answered = ports.metrics.counter('selvedge_commit_works_total')
  const refusedTotal = ports.metrics.counter('selvedge_commit_works_refused_total')
  /** Groups whose works are still being answered, in order; `next` is the next work of the first group. */
  const pending: Answered[] = []
  let next = 0

  function answer(work: Work, error: GatewayError | undefined): void {
    answered.value++
    if (error !== undefined) refusedTotal.value++
    try {
      work.answer(error)
    } catch (fault) {
      ports.log.error('gateway.fault', { error: fault, during: 'answer' })
    }
  }

  function slice(): void {
    for (let budget: number = limits.answersPerTurn.value; budget > 0 && pending.length > 0; budget--) {
      const { works, refused } = pending[0]!
      const work = works[next++]!
      if (next === works.length) {
        pending.shift()
        next = 0
      }
      answer(work, refused.get(work))
    }
    failpoint('door:mid-answer')
  }

  return Object.freeze({
    isDone: () => pending.length === 0,
    /**
     * Queues the works of a group for answering. Sends one slice now, and one per turn of the event loop for
     * each slice of this group.
     */
    enqueue(works: readonly Work[], refused: ReadonlyMap<Work, GatewayError>): void {
      if (works.length > 0) pending.push({ works, refused })
      let slices = Math.ceil(works.length / limits.answersPerTurn.value)
      const turn = (): void => {
        slice()
        slices--
        if (pending.length === 0) ports.onAnswered()
        else if (slices > 0) setImmediate(turn)
      }
      turn()
    },
  })
}
