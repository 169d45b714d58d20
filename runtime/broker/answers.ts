/**
 * Answers leave in slices, so that a thousand acknowledgements never hold the event loop, and one that throws keeps
 * nobody else from theirs.
 */
import type { GatewayError } from '#base/errors.ts'
import { failpoint } from '#base/failpoints.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Metrics } from '#base/metrics.ts'
import type { Work } from './work-queue.ts'

/** `onAnswered` is told each time when nobody is left to be answered. */
export function createAnswers(ports: { log: Log; metrics: Metrics; onAnswered: () => void }) {
  const answered = ports.metrics.counter('selvedge_commit_works_total')
  const refusedTotal = ports.metrics.counter('selvedge_commit_works_refused_total')
  /** Groups whose works are still being answered. */
  let open = 0

  function answer(work: Work, error: GatewayError | undefined): void {
    answered.value++
    if (error !== undefined) refusedTotal.value++
    try {
      work.answer(error)
    } catch (fault) {
      ports.log.error('gateway.fault', { error: fault, during: 'answer' })
    }
  }

  return Object.freeze({
    isDone: () => open === 0,
    /** Answers the works of a group in order: the first slice now, the others turn by turn. */
    give(works: readonly Work[], refused: ReadonlyMap<Work, GatewayError>): void {
      open++
      let next = 0
      const slice = (): void => {
        const end = Math.min(next + limits.answersPerTurn.value, works.length)
        for (; next < end; next++) answer(works[next]!, refused.get(works[next]!))
        failpoint('door:mid-answer')
        if (next < works.length) {
          setImmediate(slice)
          return
        }
        open--
        if (open === 0) ports.onAnswered()
      }
      slice()
    },
  })
}
