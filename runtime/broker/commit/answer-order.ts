/**
 * Answers leave in the order of the works, whatever group they came in, since a message that goes on to its subscribers
 * when it is answered must not pass one that was stored before it. They leave in slices, so that a thousand
 * acknowledgements never hold the event loop, and one that throws keeps nobody else from theirs.
 */

import { limits } from '#base/limits/limits.ts'
import type { GatewayError } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Work } from './work-queue.ts'

/** Works of a group, of which some were refused. */
interface Answered {
  readonly works: readonly Work[]
  readonly refused: ReadonlyMap<Work, GatewayError>
}

/** `onAnswered` is told each time when nobody is left to be answered. */
export function createAnswers(ports: { log: Log; metrics: Metrics; onAnswered: () => void }) {
  const answered = ports.metrics.counter('selvedge_commit_works_total')
  const refusedTotal = ports.metrics.counter('selvedge_commit_works_refused_total')
  /** Groups whose works are still being answered, in order, and the next work of the first of them. */
  const line: Answered[] = []
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
    for (let room: number = limits.answersPerTurn.value; room > 0 && line.length > 0; room--) {
      const { works, refused } = line[0]!
      const work = works[next++]!
      if (next === works.length) {
        line.shift()
        next = 0
      }
      answer(work, refused.get(work))
    }
    failpoint('door:mid-answer')
  }

  return Object.freeze({
    isDone: () => line.length === 0,
    /** Answers what waits and then the works of a group: one slice now, and one in each turn for every slice that it has. */
    give(works: readonly Work[], refused: ReadonlyMap<Work, GatewayError>): void {
      if (works.length > 0) line.push({ works, refused })
      let slices = Math.ceil(works.length / limits.answersPerTurn.value)
      const turn = (): void => {
        slice()
        slices--
        if (line.length === 0) ports.onAnswered()
        else if (slices > 0) setImmediate(turn)
      }
      turn()
    },
  })
}
