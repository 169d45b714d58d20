/**
 * A request in which other brokers may have a part, as the files about distributed operations hand it to each other.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { Json } from '#contract'
import type { Question } from '#federation/requests.ts'
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

/** A request that other brokers may have a part in. */
export interface Distributed {
  readonly c: HttpContext
  readonly broker: TenantBroker
  readonly requester: Requester
  readonly registrations: readonly Registration[]
  /** Path and query as they came. */
  readonly path: string
}

/** The request with only the sources that pass a filter of the client's (csf). */
export function filtered(
  request: Distributed,
  csf: Json | undefined,
  { expand }: Pick<Context, 'expand'>,
): Distributed {
  if (csf === undefined) return request
  const filter = parseSourceFilter(csf, { expand })
  return { ...request, registrations: request.registrations.filter((one) => passes(filter, one)) }
}

/** What takes any parameter: the route that runs afterwards knows which there are. */
export const anyParameter = { has: () => true, *[Symbol.iterator]() {} } as unknown as ReadonlySet<string>

/** The question where an entity map has a part in it: for nothing but what the map names. */
export function mappedQuestion<Asked extends Question>(question: Asked, map: MapUse | undefined): Asked {
  if (map?.page === undefined) return question
  const { ids } = map.page
  return { ...question, interests: [{ ids }], parameters: { id: ids.join(',') }, looksAt: [] }
}

/** Those that hold something of the page where an entity map says who does. */
export const mappedSources = (
  registrations: readonly Registration[],
  map: MapUse | undefined,
): readonly Registration[] => registrations.filter(({ id }) => map?.page?.sources.has(id) ?? true)

/** The pseudonyms in Via of a request. @throws peer.loop when this gateway is among them */
export function refuseLoop(c: HttpContext, alias: string): readonly string[] {
  const via = pseudonymsOf(headerOf(c, 'via'))
  if (via.includes(alias)) throw new GatewayError('peer.loop', `the request has been at ${alias} before`)
  return via
}

/** A route on another broker than that of the tenant. */
export async function runOn(
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

/** The answer with what went wrong elsewhere; where copies stand in, with the age of the oldest. */
export function warned(answer: Response, warnings: readonly Warning[]): Response {
  if (warnings.length === 0) return answer
  const headers = new Headers(answer.headers)
  const lines = warnings.map(({ code, agent, text }) => warningLine(code, agent, text))
  for (const line of fittingWarnings(lines)) headers.append('NGSILD-Warning', line)
  const ages = warnings.flatMap(({ age }) => age ?? [])
  if (ages.length > 0) headers.set('Age', String(Math.max(...ages)))
  return new Response(answer.body, { status: answer.status, headers })
}

/**
 * The answer with the headers that every local answer has: the tenant (6.3.14) and, where there is JSON, the version of the
 * API that was preferred (6.3.6). Answers and failures of sources do not have them.
 */
export function finished(answer: Response, { requester: { tenant }, c }: Distributed): Response {
  const headers = new Headers(answer.headers)
  if (tenant !== '') headers.set('NGSILD-Tenant', tenant)
  const minor = preferredMinor(headerOf(c, 'prefer'))
  const isJson = headers.get('Content-Type')?.includes('json') === true
  if (minor !== undefined && isJson) headers.set('Preference-Applied', `ngsi-ld=1.${minor}`)
  return new Response(answer.body, { status: answer.status, headers })
}
