/**
 * Routes that create and read entities (GS CIM 009, 6.4, 6.5 and 6.23). They translate between HTTP and the
 * broker and contain no rules about entities; updates are in `entity-writes.ts`. Retrieval is the hottest
 * path of the interface: it awaits nothing and sends the stored text.
 */

import type { ApiPorts } from '#http/request/api-ports.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import { idOf, pathSegment } from '#http/request/path-ids.ts'
import type { ApiRequest } from '#http/request/request.ts'
import { responseOf } from '#http/request/response.ts'
import { parseEntity } from '#ngsi-ld/entity/entity.ts'
import type { EntitySelector } from '#ngsi-ld/query/entity-selector.ts'
import { notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { ProfileRules } from '#ngsi-ld/values/profile.ts'
import { type EntityReads, queryParameters, retrieveParameters } from './entity-reads.ts'
import { pageParameters, withShortNames } from './entity-search.ts'
import { readQueryBody } from './query-body.ts'

export const entitiesPath = '/ngsi-ld/v1/entities'

export interface EntityRoutePorts extends ApiPorts {
  readonly reads: EntityReads
  readonly rules: ProfileRules
}

const localParameters = new Set(['local'])
/** URL parameters allowed beside a query body. */
export const bodyQueryParameters = new Set<string>([...pageParameters, 'local', 'options', 'format'])

export function createEntityRoutes({ requests, answers, reads, rules }: EntityRoutePorts) {
  const show = (c: HttpContext, parsed: ApiRequest): Response => {
    const request = withShortNames(parsed)
    const prepared = reads.prepareRetrieval(request)
    const view = request.broker.retrieve(c.req.param('id') ?? '')
    // The id's syntax matters only if no entity was found.
    if (view === undefined) throw notFound(`no entity ${idOf(c)}`)
    return responseOf(reads.one(request, view, prepared, headerOf(c, 'if-none-match')))
  }

  const list = (
    c: HttpContext,
    request: ApiRequest,
    chosen?: readonly EntitySelector[],
  ): Response | Promise<Response> => {
    // An entity map has already selected the entities.
    const selectors = chosen ?? (c.env.map?.page === undefined ? undefined : [])
    const from = { url: c.req.url, chosen: selectors, isWithin: c.env.isWithin === true }
    const reply = reads.page(request, reads.prepareQuery(request, from))
    return reply instanceof Promise ? reply.then(responseOf) : responseOf(reply)
  }

  return Object.freeze({
    async create(c: HttpContext): Promise<Response> {
      const request = await requests.body(c, { known: localParameters, creates: true })
      const entity = parseEntity(request.body, request.context)
      await (await request.enter()).create(entity, requests.by(c))
      return answers.created(
        request,
        `${entitiesPath}/${pathSegment(entity.id)}`,
        rules.createAnswersId ? entity.id : undefined,
      )
    },

    retrieve(c: HttpContext): Response | Promise<Response> {
      const request = requests.readEntities(c, retrieveParameters)
      return request instanceof Promise ? request.then((known) => show(c, known)) : show(c, request)
    },

    query(c: HttpContext): Response | Promise<Response> {
      const request = requests.readEntities(c, queryParameters)
      return request instanceof Promise
        ? request.then((known) => list(c, withShortNames(known)))
        : list(c, withShortNames(request))
    },

    /** POST entityOperations/query: the members of the body replace the URL parameters (5.2.23). */
    async queryByBody(c: HttpContext): Promise<Response> {
      const { body, ...request } = withShortNames(await requests.query(c, bodyQueryParameters))
      const { parameters, entities } = readQueryBody(body, request.context.expand)
      return list(c, { ...request, parameters: new Map([...request.parameters, ...parameters]) }, entities)
    },
  })
}
