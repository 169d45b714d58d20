/**
 * Whether something is really not there over there. Somebody on the way, such as a proxy whose broker is just starting, answers
 * 404 for all there is: only a broker's own word is believed, or the same answer before and after one that only a broker gives.
 */
import type { PeerAnswer } from '#federation/peer.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { problemTypeIn } from '#ngsi-ld/values/ngsi-ld-problem.ts'

type Answer = Extract<PeerAnswer, { status: number }>

/** Neither this thing nor this operation is there. */
export const isAbsent = ({ status }: Answer): boolean => [404, 405, 501].includes(status)

/** Somebody on the way lets nothing through to it, and the rest through: a proxy that guards what it knows. */
export const isForbidden = ({ status }: Answer): boolean => status === 401 || status === 403

/** An answer that says, or does not say, that something is not there. */
export interface Confirmation {
  readonly answer: PeerAnswer
  readonly isConfirmed: boolean
}

/**
 * Asks, and asks again where an answer is in doubt. `says` tells answers that say that something is not there; others, and
 * those that are not believed, come back as they are.
 */
export type ConfirmAbsent = (
  ask: () => Promise<PeerAnswer>,
  says?: (answer: Answer) => boolean,
) => Promise<Confirmation>

/** Of what is written for a trial, and of what is asked for to see whether a broker answers. */
export const probeType = 'SelvedgeProbe'

/** A question that every broker answers with a list of entities, mostly an empty one. */
export const brokerProbePath = `/entities?type=${probeType}&limit=1`

/** Whether an answer to that is one. */
export const isList = (answer: PeerAnswer): boolean =>
  'status' in answer && answer.status === 200 && areEntities(parsedJson(answer.text))

export const areEntities = (json: unknown): json is readonly Entity[] =>
  Array.isArray(json) && json.every((one) => isObject(one) && typeof one['id'] === 'string')

export function createConfirmAbsent(brokerResponds: () => Promise<boolean>): ConfirmAbsent {
  return async (ask, says = isAbsent) => {
    const answer = await ask()
    if ('failure' in answer || !says(answer)) return { answer, isConfirmed: false }
    if (isBrokerError(answer)) return { answer, isConfirmed: true }
    if (!(await brokerResponds())) return { answer, isConfirmed: false }
    // It may have come back between the two.
    const again = await ask()
    return { answer: again, isConfirmed: 'status' in again && says(again) }
  }
}

/** Whether there was an answer, of more than is taken: it will be no shorter when it is asked for again. */
export const isTooLarge = (
  answer: PeerAnswer,
): answer is Extract<PeerAnswer, { failure: string }> & { isTooLarge: true } =>
  'failure' in answer && answer.isTooLarge === true

/** Whether a page of entities ended before its limit, because they are large: the next link names that limit. */
export function endedEarly(answer: PeerAnswer): boolean {
  if (!('status' in answer) || answer.status !== 200) return false
  const limit = /[?&]limit=(\d+)[^>]*>\s*;[^<]*\brel="?next\b/.exec(String(answer.headers['link'] ?? ''))?.[1]
  if (limit === undefined) return false
  const items = parsedJson(answer.text)
  return Array.isArray(items) && items.length < Number(limit)
}

/** Whether a broker says that it has nothing at all of a tenant, which comes into being with what is written. */
export const isNoTenant = (answer: PeerAnswer): boolean =>
  'status' in answer && answer.status === 404 && problemOf(answer).endsWith('NonexistentTenant')

/** Whether an error is of NGSI-LD (GS CIM 009, 5.5.2); one of a tenant says nothing of what is asked for. */
const isBrokerError = (answer: Answer): boolean => problemOf(answer) !== '' && !isNoTenant(answer)

/** What NGSI-LD calls an error; empty where it is none of these. */
export const problemOf = ({ text }: Answer): string => problemTypeIn(text)
