/** Entity queries run to the end in one go, for tests of what they find and not of how they let others pass. */
import { createEntityQuery } from '#store/query/entity-query.ts'
import type { SearchSteps } from '#store/query/query-plan.ts'

export function finished<T>(steps: SearchSteps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

export function createWholeQuery(...given: Parameters<typeof createEntityQuery>) {
  const { page, ordered, count, knownPage } = createEntityQuery(...given)
  return Object.freeze({
    knownPage,
    page: (...asked: Parameters<typeof page>) => finished(page(...asked)),
    ordered: (...asked: Parameters<typeof ordered>) => finished(ordered(...asked)),
    count: (...asked: Parameters<typeof count>) => finished(count(...asked)),
  })
}
