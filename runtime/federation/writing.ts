/**
 * Distributed provision (GS CIM 009, 4.3.6 and 5.6): sends parts of a write to their sources and returns the
 * outcome of each. The caller does the local part and builds the response.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import type { WritePart } from '#ngsi-ld/federation/distribution.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { conflict } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { SourceRequest } from './source-form.ts'
import type { Requester, SourceAnswer, Sources } from './sources.ts'

export interface PartOutcome {
  readonly registration: Registration
  readonly isProxied: boolean
  /** Absent on success. */
  readonly error?: GatewayError
  /** The source's own problem body. */
  readonly problem?: Json
  readonly status: number
  /** The JSON body of the source's answer, if any. */
  readonly body?: Json
}

export async function sendPart(
  sources: Sources,
  requester: Requester,
  {
    part,
    request,
  }: { part: Pick<WritePart, 'registration' | 'isProxied' | 'isOffered'>; request: SourceRequest },
): Promise<PartOutcome> {
  const { registration, isProxied, isOffered } = part
  if (!isOffered) {
    const error = conflict(`${registration.id} is responsible for this and does not offer the operation`)
    return { registration, isProxied, status: 409, error }
  }
  const answer = await sources.send(requester, registration, request)
  return { registration, isProxied, ...judged(registration, answer) }
}

function judged(
  { id }: Registration,
  answer: SourceAnswer,
): Pick<PartOutcome, 'status' | 'error' | 'problem' | 'body'> {
  if ('failure' in answer) {
    // A source in its cooldown counts as timed out [5.2.34].
    const code = answer.failure === 'unreachable' ? 'peer.unavailable' : 'peer.timeout'
    const error = new GatewayError(code, `${id}: ${answer.reason}`)
    return { status: error.entry.status, error }
  }
  const { status } = answer
  const body = parsedJson(answer.text)
  if (status >= 200 && status < 300) return body === undefined ? { status } : { status, body }
  const detail = isObject(body) && typeof body['detail'] === 'string' ? `: ${body['detail']}` : ''
  const message = `${id} answered ${status}${detail}`
  const problem = isObject(body) && typeof body['type'] === 'string' ? { problem: body } : {}
  if (status === 404) return { status, error: new GatewayError('ngsi-ld.not-found', message), ...problem }
  if (status === 409)
    return { status, error: new GatewayError('ngsi-ld.already-exists', message), ...problem }
  if (status === 508) return { status, error: new GatewayError('peer.loop', message) }
  if (status === 504) return { status, error: new GatewayError('peer.timeout', message) }
  if (status >= 500) return { status: 502, error: new GatewayError('peer.unavailable', message) }
  return { status, error: new GatewayError('ngsi-ld.bad-request-data', message), ...problem }
}
