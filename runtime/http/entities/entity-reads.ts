/**
 * What is answered to those who read entities (GS CIM 009, 5.7): from what a request wishes, which its parameters and its
 * context say alone, and a broker. A wish holds nothing of one request but that, so it may be kept and used again.
 */
import { limits } from '#base/limits/limits.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import { wholeNumber } from '#http/request/negotiate.ts'
import { type PageLinker, pageLinker } from '#http/request/paging.ts'
import { type ApiRequest, withWarning } from '#http/request/request.ts'
import type { Answers, Reply } from '#http/request/response.ts'
import { type EntitySelector, matchesType, type TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { linkedDepthOf } from '#ngsi-ld/query/query.ts'
import { badRequestData, notFound, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import {
  conditionsOrIds,
  entityQueryOf,
  pageParameters,
  searchParameters,
  typeHint,
  typesOf,
} from './entity-search.ts'
import { type Rendering, renderingOf, renderingParameters } from './rendering.ts'

/** Parameters of the retrieval of one entity. */
export const retrieveParameters: ReadonlySet<string> = new Set([
  ...renderingParameters,
  'type',
  'local',
  'entityMap',
  'entityMapLifetime',
])
/** Those of a query. */
export const queryParameters: ReadonlySet<string> = new Set([
  ...retrieveParameters,
  ...searchParameters,
  ...pageParameters,
])

export interface PreparedRetrieval {
  readonly rendering: Rendering
  readonly type: TypeSelection | undefined
}

export interface PreparedQuery {
  readonly rendering: Rendering
  readonly query: EntityQuery
  readonly links: PageLinker
}

/** Where a query came from. */
export interface QueryOrigin {
  readonly url: string
  /** Selectors that a body brought, or that stand for a map. */
  readonly chosen?: readonly EntitySelector[] | undefined
  /** It was asked by a component of this gateway. */
  readonly isWithin?: boolean
}

export function createEntityReads(answers: Answers) {
  const renderingFor = (request: ApiRequest): Rendering => {
    let joinedBytes = 0
    return renderingOf(request.parameters, {
      context: request.context,
      shown: answers.contextFor(request),
      follow: (id, types) => {
        const found = request.broker.retrieve(id)
        joinedBytes += found?.text().length ?? 0
        if (joinedBytes > limits.joinedBytesMax.value)
          throw tooComplex(`linked entities of more than ${limits.joinedBytesMax.value} characters`)
        // Only whoever says of which type it is links to what others hold (4.5.23).
        if (found === undefined && types.length > 0) request.broker.linked?.(id, types)
        return found
      },
      isGeoJson: request.isGeoJson,
      amendment: request.amendment,
    })
  }

  return Object.freeze({
    /** @throws ngsi-ld.invalid-request, ngsi-ld.bad-request-data */
    prepareRetrieval: (request: ApiRequest): PreparedRetrieval => ({
      rendering: renderingFor(request),
      type: typesOf(request),
    }),

    /** @throws ngsi-ld.invalid-request, ngsi-ld.bad-request-data */
    prepareQuery(request: ApiRequest, { url, chosen, isWithin = false }: QueryOrigin): PreparedQuery {
      const rendering = renderingFor(request)
      const query = entityQueryOf(request, rendering.attrs, chosen, conditionsOrIds)
      // Components find by what entities are linked to, and have no use for those.
      if (!isWithin) checkLinks(query, request)
      return { rendering, query, links: pageLinker(url, query) }
    },

    /**
     * One entity, or that it is as the client `knows` it.
     * @throws ngsi-ld.not-found where it is of other types, or has nothing of what is asked for.
     */
    one(
      request: ApiRequest,
      view: EntityView,
      { rendering, type }: PreparedRetrieval,
      knows: string | undefined,
    ): Reply {
      const context = answers.contextFor(request)
      if (type !== undefined && !matchesType(type, view.entity().type))
        throw notFound(`${view.id} is of other types`)
      const text = rendering.text(view)
      if (text === undefined) throw notFound(`${view.id} has nothing of what was asked for`)
      // A flat answer is a list, whether there is somebody linked or not.
      const linked = rendering.linked?.([view])
      if (linked !== undefined) return answers.page(request, { texts: [text, ...linked], context })
      if (rendering.joins === true) return answers.whole(request, text, context)
      return answers.version(request, text, context, { version: view.version(), knows })
    },

    page(request: ApiRequest, prepared: PreparedQuery): Reply | Promise<Reply> {
      const found = request.broker.query(prepared.query, request.broker.linked)
      return found instanceof Promise
        ? found.then((page) => pageReply(request, prepared, page))
        : pageReply(request, prepared, found)
    },

    /** The same, where it is found within one turn. */
    shortPage(request: ApiRequest, prepared: PreparedQuery): Reply | undefined {
      const found = request.broker.shortQuery(prepared.query)
      return found && pageReply(request, prepared, found)
    },
  })

  function pageReply(
    request: ApiRequest,
    { rendering, query, links }: PreparedQuery,
    page: QueryPage,
  ): Reply {
    const { entities, count } = page
    const context = answers.contextFor(request)
    const texts: string[] = []
    for (const view of entities) {
      const text = rendering.text(view)
      if (text !== undefined) texts.push(text)
    }
    const linked = rendering.linked?.(entities) ?? []
    const isFirst = query.offset === 0 && query.after === undefined
    const hint = entities.length === 0 && isFirst ? typeHint(query, request) : undefined
    return answers.page(
      withWarning(request, hint),
      { texts: linked.length === 0 ? texts : [...texts, ...linked], context },
      { count, links: links(page) },
    )
  }
}

/** Conditions on linked entities go only with these (5.7.2.4). @throws ngsi-ld.bad-request-data */
function checkLinks({ q }: EntityQuery, { parameters }: ApiRequest): void {
  const depth = q === undefined ? 0 : linkedDepthOf(q)
  if (depth === 0) return
  if ((parameters.get('join') ?? '@none') === '@none')
    throw badRequestData('conditions on linked entities go only with join', 'q')
  if (depth > (wholeNumber(parameters, 'joinLevel') ?? 1))
    throw badRequestData('reaches further than joinLevel', 'q')
}

export type EntityReads = ReturnType<typeof createEntityReads>
