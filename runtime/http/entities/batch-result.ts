/**
 * The 207 response with the result of each item of a batch (GS CIM 009, 5.2.16 and 6.3.8). Both lists are
 * always present.
 */
import type { BatchResult } from '#broker/entities/entity-requests.ts'
import type { Problems } from '#http/request/error-response.ts'
import type { RequestHead } from '#http/request/request.ts'
import type { Answers } from '#http/request/response.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'

export interface MultiStatusPorts {
  readonly answers: Answers
  readonly problems: Problems
}

export function multiStatus(
  { answers, problems }: MultiStatusPorts,
  request: Pick<RequestHead, 'tenant'>,
  result: BatchResult,
  remote: RemoteResult = { success: [], errors: [] },
): Response {
  const errors = result.errors.map(({ entityId, error }) => ({
    entityId,
    error: { ...problems.body(error) },
  }))
  const failed = new Set(remote.errors.map(({ entityId }) => entityId))
  const success = [...new Set([...result.success, ...remote.success])].filter((id) => !failed.has(id))
  return answers.data(request, { success, errors: [...errors, ...remote.errors] }, { status: 207 })
}

/** Results reported by sources. An entity that any source failed to process does not count as a success. */
export interface RemoteResult {
  readonly success: readonly string[]
  readonly errors: readonly JsonObject[]
}
