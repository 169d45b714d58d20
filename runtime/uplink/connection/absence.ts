/**
 * Confirms that something is absent at the centre. An intermediary, such as a proxy whose broker is still
 * starting, may answer 404 to everything. Absence is confirmed by an NGSI-LD error, or by the same response
 * before and after a response that only a broker gives.
 */
import type { PeerAnswer } from '#federation/peer.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { problemTypeIn } from '#ngsi-ld/values/ngsi-ld-problem.ts'

type Answer = Extract<PeerAnswer, { status: number }>

/** The resource or the operation does not exist. */
export const isAbsent = ({ status }: Answer): boolean => [404, 405, 501].includes(status)

/** An intermediary blocks this path, such as a proxy that passes only known paths. */
export const isForbidden = ({ status }: Answer): boolean => status === 401 || status === 403

/** A response, and whether the absence it reports is confirmed. */
export interface Confirmation {
  readonly answer: PeerAnswer
  readonly isConfirmed: boolean
}

/**
 * Sends a request, and repeats it while the reported absence is in doubt. `reportsAbsence` recognizes
 * responses that report absence; others are returned unconfirmed.
 */
export type ConfirmAbsent = (
  ask: () => Promise<PeerAnswer>,
  says?: (answer: Answer) => boolean,
) => Promise<Confirmation>

/** The entity type of link tests and broker probes. */
export const probeType = 'SelvedgeProbe'

/** A query that every broker answers with a list of entities, usually empty. */
export const brokerProbePath = `/entities?type=${probeType}&limit=1`

/** Whether a response is such a list. */
export const isList = (answer: PeerAnswer): boolean =>
  'status' in answer && answer.status === 200 && areEntities(parsedJson(answer.text))

export const areEntities = (json: unknown): json is readonly Entity[] =>
  Array.isArray(json) && json.every((one) => isObject(one) && typeof one['id'] === 'string')

export function createConfirmAbsent(brokerResponds: () => Promise<boolean>): ConfirmAbsent {
  return async (send, reportsAbsence = isAbsent) => {
    const answer = await send()
    if ('failure' in answer || !reportsAbsence(answer)) return { answer, isConfirmed: false }
    if (isBrokerError(answer)) return { answer, isConfirmed: true }
    if (!(await brokerResponds())) return { answer, isConfirmed: false }
    // The resource may have reappeared between the two requests.
    const again = await send()
    return { answer: again, isConfirmed: 'status' in again && reportsAbsence(again) }
  }
}

/** Whether the response exceeded the size limit; repeating the request would not shorten it. */
export const isTooLarge = (
  answer: PeerAnswer,
): answer is Extract<PeerAnswer, { failure: string }> & { isTooLarge: true } =>
  'failure' in answer && answer.isTooLarge === true

/** Whether a page was cut below its limit because its entities are large: the next link names that limit. */
export function endedEarly(answer: PeerAnswer): boolean {
  if (!('status' in answer) || answer.status !== 200) return false
  const limit = /[?&]limit=(\d+)[^>]*>\s*;[^<]*\brel="?next\b/.exec(String(answer.headers['link'] ?? ''))?.[1]
  if (limit === undefined) return false
  const items = parsedJson(answer.text)
  return Array.isArray(items) && items.length < Number(limit)
}

/** Whether a broker reports an unknown tenant, which the first write creates. */
export const isNoTenant = (answer: PeerAnswer): boolean =>
  'status' in answer && answer.status === 404 && problemOf(answer).endsWith('NonexistentTenant')

/**
 * Whether the response is an NGSI-LD error (GS CIM 009, 5.5.2); an unknown tenant says nothing about the
 * resource.
 */
const isBrokerError = (answer: Answer): boolean => problemOf(answer) !== '' && !isNoTenant(answer)

/** The NGSI-LD error type; empty if it is none. */
export const problemOf = ({ text }: Answer): string => problemTypeIn(text)
