/**
 * Purges entities (GS CIM 009, 5.6.21 and 6.4.3.3, since 1.9). It deletes every entity that matches a query,
 * or only the attributes in `drop`, or all attributes except those in `keep`. A purge of all entities
 * requires local=true.
 */

import type { BatchResult } from '#broker/entities/entity-requests.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import type { HttpContext } from '#http/request/body.ts'
import type { Problems } from '#http/request/error-response.ts'
import type { ApiRequest } from '#http/request/request.ts'
import { hasLinked } from '#ngsi-ld/query/query.ts'
import { listOf } from '#ngsi-ld/query/url-parameters.ts'
import { checkName } from '#ngsi-ld/values/names.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { multiStatus, type RemoteResult } from './batch-result.ts'
import { entityQueryOf, selectionParameters } from './entity-search.ts'

export interface PurgeRoutePorts extends ApiPorts {
  readonly problems: Problems
}

const filters = [...selectionParameters, 'attrs'] as const
const purgeParameters = new Set<string>([...filters, 'keep', 'drop', 'local'])

export function createPurgeRoutes({ requests, answers, problems }: PurgeRoutePorts) {
  /** Purges the local entities. */
  async function run(c: HttpContext): Promise<Purged> {
    const request = await requests.read(c, purgeParameters)
    const [keep, drop] = [namesOf(request, 'keep'), namesOf(request, 'drop')]
    if (keep !== undefined && drop !== undefined) throw invalidRequest('keep and drop exclude each other')
    const query = entityQueryOf(request, namesOf(request, 'attrs'), undefined)
    if (query.q !== undefined && hasLinked(query.q))
      throw badRequestData('a purge cannot have conditions on linked entities', 'q')
    return { request, result: await request.broker.purge(query, { by: requests.by(c), keep, drop }) }
  }
  /** 204, or 207 if a part failed here or at a source. */
  function answer({ request, result }: Purged, remote: RemoteResult = { success: [], errors: [] }): Response {
    return result.errors.length === 0 && remote.errors.length === 0
      ? answers.noContent(request)
      : multiStatus({ answers, problems }, request, result, remote)
  }

  return Object.freeze({ run, answer, purge: async (c: HttpContext) => answer(await run(c)) })
}

export type PurgeRoutes = ReturnType<typeof createPurgeRoutes>

interface Purged {
  readonly request: ApiRequest
  readonly result: BatchResult
}

function namesOf({ parameters, context }: ApiRequest, parameter: string): ReadonlySet<string> | undefined {
  const names = listOf(parameters, parameter)?.map((term) => checkName(context.expand(term), parameter))
  if (names === undefined) return undefined
  if (names.includes('id') || names.includes('type'))
    throw badRequestData('must name attributes, not id or type', parameter)
  return new Set(names)
}
