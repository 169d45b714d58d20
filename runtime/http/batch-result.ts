/**
 * The answer that names what became of each item of a batch (GS CIM 009, 5.2.16 and 6.3.8). Both lists are always
 * there.
 */
import type { BatchResult } from '#broker/types.ts'
import type { Answers } from './answer.ts'
import type { AskHead } from './ask.ts'
import type { Problems } from './problem.ts'

export interface MultiStatusPorts {
  readonly answers: Answers
  readonly problems: Problems
}

export function multiStatus(
  { answers, problems }: MultiStatusPorts,
  ask: Pick<AskHead, 'tenant'>,
  result: BatchResult,
): Response {
  const errors = result.errors.map(({ entityId, error }) => ({
    entityId,
    error: { ...problems.body(error) },
  }))
  return answers.data(ask, { success: [...result.success], errors }, { status: 207 })
}
