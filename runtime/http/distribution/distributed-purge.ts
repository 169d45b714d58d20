/**
 * A purge that involves context sources (GS CIM 009, 5.6.21). Every source that may hold matching entities
 * and offers the operation receives the same request. Failures are reported per source.
 */

import type { Json } from '#contract'
import { sendPart } from '#federation/writing.ts'
import type { PurgeRoutes } from '#http/entities/purge.ts'
import type { Distributed } from '#http/request/distributed-request.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { modeOf } from '#ngsi-ld/federation/registration.ts'
import { type Interest, isOfInterest } from '#ngsi-ld/federation/registration-match.ts'
import { offers } from '#ngsi-ld/federation/registration-operations.ts'
import { isObject, listOf, textsOf } from '#ngsi-ld/values/json.ts'
import { partsOf } from '#ngsi-ld/values/request-target.ts'
import { type DistributedWritePorts, headersOf } from './distributed-writes.ts'

interface Purge {
  readonly interests: readonly Interest[]
  /** The context of the request's names. */
  readonly context: Context
  readonly local: Pick<PurgeRoutes, 'run' | 'answer'>
}

export async function purgeDistributed(
  { problems, sources }: Pick<DistributedWritePorts, 'problems' | 'sources'>,
  { c, requester, registrations, path }: Distributed,
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
  // The local purge runs first: an invalid request fails before any source is called.
  const here = await local.run(c)
  const [place, query] = partsOf(path)
  const request = {
    method: 'DELETE',
    // Without a trailing slash, which a source may not accept.
    path: `${place.replace(/\/$/, '')}?${query}`,
    headers: headersOf(c, false),
    contexts: [context],
  } as const
  const outcomes = await Promise.all(parts.map((part) => sendPart(sources, requester, { part, request })))
  const results = outcomes.map(({ error, registration: { id: registrationId }, status, body }) => {
    if (error !== undefined)
      return { success: [], errors: [{ registrationId, error: { ...problems.body(error) } }] }
    if (status !== 207 || !isObject(body)) return { success: [], errors: [] }
    const errors = listOf<Json>(body['errors'] ?? []).filter(isObject)
    return {
      success: textsOf(body['success'] ?? []),
      errors: errors.map((one) => ({ ...one, registrationId })),
    }
  })
  return local.answer(here, {
    success: results.flatMap(({ success }) => success),
    errors: results.flatMap(({ errors }) => errors),
  })
}
