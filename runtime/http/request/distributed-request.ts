/**
 * The client's request as all files in `http/distribution` use it. Also rejects a request that passed through
 * this gateway before, by its Via chain (`refuseLoop`).
 */
import { GatewayError } from '#base/register/errors.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { Json } from '#contract'
import type { ClientQuery } from '#federation/requests.ts'
import type { Requester, Warning } from '#federation/sources.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { passes } from '#ngsi-ld/federation/registration-match.ts'
import { pseudonymsOf } from '#ngsi-ld/federation/via.ts'
import { preferredMinor } from '#ngsi-ld/representation/conformance.ts'
import { parseSourceFilter } from '#ngsi-ld/subscription/subscription-parse.ts'
import { fittingWarnings, warningLine } from '#ngsi-ld/values/warning-lines.ts'
import { type HttpContext, headerOf } from './body.ts'
import type { Problems } from './error-response.ts'
import type { MapUse } from './http-environment.ts'

/** A request that other brokers may take part in. */
export interface Distributed {
  readonly c: HttpContext
  readonly broker: TenantBroker
  readonly requester: Requester
  readonly registrations: readonly Registration[]
  /** Path and query as received. */
  readonly path: string
}

/** Keeps only the sources that pass the client's filter (csf). */
export function withSourceFilter(
  request: Distributed,
  csf: Json | undefined,
  { expand }: Pick<Context, 'expand'>,
): Distributed {
  if (csf === undefined) return request
  const filter = parseSourceFilter(csf, { expand })
  return { ...request, registrations: request.registrations.filter((one) => passes(filter, one)) }
}

/** Accepts any parameter; the route that runs afterwards checks their names. */
export const anyParameter = { has: () => true, *[Symbol.iterator]() {} } as unknown as ReadonlySet<string>

/** Limits a query to the ids of an entity map's page, if a map is used. */
export function mappedQuery<Asked extends ClientQuery>(clientQuery: Asked, map: MapUse | undefined): Asked {
  if (map?.page === undefined) return clientQuery
  const { ids } = map.page
  return { ...clientQuery, interests: [{ ids }], parameters: { id: ids.join(',') }, looksAt: [] }
}

/** The sources that hold entities of the map's page; all of them without a map. */
export const mappedSources = (
  registrations: readonly Registration[],
  map: MapUse | undefined,
): readonly Registration[] => registrations.filter(({ id }) => map?.page?.sources.has(id) ?? true)

/** The pseudonyms in the Via header of a request. @throws peer.loop if this gateway is among them */
export function refuseLoop(c: HttpContext, alias: string): readonly string[] {
  const via = pseudonymsOf(headerOf(c, 'via'))
  if (via.includes(alias)) throw new GatewayError('peer.loop', `the request passed through ${alias} before`)
  return via
}

/** Runs a route on a broker other than the tenant's. */
export async function runRoute(
  problems: Problems,
  c: HttpContext,
  at: TenantBroker,
  local: (c: HttpContext) => Response | Promise<Response>,
): Promise<Response> {
  c.env = { ...c.env, broker: at }
  try {
    return await local(c)
  } catch (error) {
    return problems.answer(error)
  }
}

/** Adds warnings about failed sources; if cached copies were used, adds the age of the oldest. */
export function withWarnings(answer: Response, warnings: readonly Warning[]): Response {
  if (warnings.length === 0) return answer
  const headers = new Headers(answer.headers)
  const lines = warnings.map(({ code, agent, text }) => warningLine(code, agent, text))
  for (const line of fittingWarnings(lines)) headers.append('NGSILD-Warning', line)
  const ages = warnings.flatMap(({ age }) => age ?? [])
  if (ages.length > 0) headers.set('Age', String(Math.max(...ages)))
  return new Response(answer.body, { status: answer.status, headers })
}

/**
 * Adds the headers of every local response: the tenant (6.3.14) and, for JSON, the applied API version
 * (6.3.6). Responses and errors of sources lack them.
 */
export function withCommonHeaders(answer: Response, { requester: { tenant }, c }: Distributed): Response {
  const headers = new Headers(answer.headers)
  if (tenant !== '') headers.set('NGSILD-Tenant', tenant)
  const minor = preferredMinor(headerOf(c, 'prefer'))
  const isJson = headers.get('Content-Type')?.includes('json') === true
  if (minor !== undefined && isJson) headers.set('Preference-Applied', `ngsi-ld=1.${minor}`)
  return new Response(answer.body, { status: answer.status, headers })
}
