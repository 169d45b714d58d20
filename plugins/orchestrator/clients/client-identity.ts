/**
 * Identifies the client of a request: by the subject of its token, else the header Selvedge-Client, else the
 * network address.
 * The identity serves to count and to share subscriptions; it grants no rights. Pure.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import type { DirectRequest } from '#contract'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'

export interface ClientIdentity {
  readonly id: string
  readonly by: 'token' | 'header' | 'address'
}

/** @param socket undefined for a request from within. */
export function clientOf(
  headers: Pick<Headers, 'get'>,
  socket: DirectRequest['socket'] | undefined,
): ClientIdentity {
  const token = headers.get('authorization')?.replace(/^bearer\s+/i, '') ?? headers.get('x-auth-token')
  const subject = subjectOf(token ?? '')
  if (subject !== undefined) return { id: bounded(subject), by: 'token' }
  const named = headers.get('selvedge-client')?.trim()
  if (named !== undefined && named !== '') return { id: bounded(named), by: 'header' }
  const address = socket?.remoteAddress?.replace(/^::ffff:/, '')
  return { id: address ?? 'selvedge', by: 'address' }
}

/** The subject of a JSON Web Token; its signature is checked by the broker that accepts it. */
function subjectOf(token: string): string | undefined {
  const [, payload, signature] = token.trim().split('.', 4)
  if (payload === undefined || signature === undefined) return undefined
  const claims = parsedJson(Buffer.from(payload, 'base64url').toString())
  const subject = isObject(claims) ? claims['sub'] : undefined
  return typeof subject === 'string' && subject !== '' ? subject : undefined
}

/** A long id as its digest. */
const bounded = (id: string): string =>
  id.length <= limits.orchestratorClientCharacters.value ? id : `sha256:${hash('sha256', id)}`
