/**
 * A purge that others have a part in (GS CIM 009, 5.6.21): every source that claims something of what matches, and
 * offers the operation, gets the same request; what could not be done is told by source.
 */

import type { Json } from '#contract'
import { sendPart } from '#federation/writing.ts'
import type { Context } from '#ngsi-ld/context.ts'
import { isObject, listOf } from '#ngsi-ld/json.ts'
import { modeOf } from '#ngsi-ld/registration.ts'
import { type Interest, isOfInterest } from '#ngsi-ld/registration-match.ts'
import { offers } from '#ngsi-ld/registration-operations.ts'
import type { HttpContext } from './body.ts'
import type { Distributed } from './distributed.ts'
import { type DistributedWritePorts, headersOf } from './distributed-writes.ts'

interface Purge {
  readonly interests: readonly Interest[]
  /** What names in the request are in. */
  readonly context: Context
  readonly local: (c: HttpContext) => Response | Promise<Response>
}

export async function purgeEverywhere(
  { answers, problems, sources }: DistributedWritePorts,
  { c, asker, registrations, path }: Distributed,
  { interests, context, local }: Purge,
): Promise<Response> {
  const parts = registrations.flatMap((registration) => {
    const mode = modeOf(registration)
    const isProxied = mode === 'exclusive' || mode === 'redirect'
    const isOffered = offers(registration, 'purgeEntity')
    const isConcerned = registration.information.some((info) =>
      interests.some((interest) => isOfInterest(interest, info)),
    )
    if (mode === 'auxiliary' || !isConcerned || !(isProxied || isOffered)) return []
    return [{ registration, isProxied, isOffered }]
  })
  const here = await local(c)
  if (here.status >= 300 || parts.length === 0) return here
  // As the resource is called, with or without a slash at the end here.
  const request = {
    method: 'DELETE',
    path: path.replace(/\/(?=\?|$)/, ''),
    headers: headersOf(c, false),
    contexts: [context],
  } as const
  const outcomes = await Promise.all(parts.map((part) => sendPart(sources, asker, { part, request })))
  const bad = outcomes.flatMap(({ error, registration, status, body }) => {
    if (error !== undefined) return [{ registrationId: registration.id, error: { ...problems.body(error) } }]
    if (status !== 207 || !isObject(body)) return []
    const told = listOf<Json>(body['errors'] ?? []).filter(isObject)
    return told.map((one) => ({ ...one, registrationId: registration.id }))
  })
  if (bad.length === 0) return here
  const body =
    here.status === 207 ? ((await here.clone().json()) as { success: Json[]; errors: Json[] }) : undefined
  return answers.json({ success: body?.success ?? [], errors: [...(body?.errors ?? []), ...bad] }, 207)
}
