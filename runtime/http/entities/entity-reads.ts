/**
 * Builds the responses to entity reads (GS CIM 009, 5.7) from a prepared query and a broker. A prepared query
 * depends only on the request's parameters and context, so it can be cached.
 */
import { limits } from '#base/limits/limits.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { Reply } from '#contract'
import { type PageLinker, pageLinker } from '#http/request/paging.ts'
import { type ApiRequest, withWarning } from '#http/request/request.ts'
import type { Answers } from '#http/request/response.ts'
import { type EntitySelector, matchesType, type TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { linkedDepthOf } from '#ngsi-ld/query/query.ts'
import { wholeNumber } from '#ngsi-ld/query/url-parameters.ts'
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
/** Parameters of an entity query. */
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

/** The origin of a query. */
export interface QueryOrigin {
  readonly url: string
  /** Selectors from a body, or a replacement for them if a map supplies the ids. */
  readonly chosen?: readonly EntitySelector[] | undefined
  /** Whether a component of this gateway sent the query. */
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
          throw tooComplex(`the linked entities have more than ${limits.joinedBytesMax.value} characters`)
        // A link without a type is not followed to other brokers (4.5.23).
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
      // Components may filter by linked entities without joining them.
      if (!isWithin) checkLinks(query, request)
      return { rendering, query, links: pageLinker(url, query) }
    },

    /**
     * The reply with one entity; 304 if the client has the current version.
     *
     * @throws ngsi-ld.not-found if it is of another type or has none of the requested attributes.
     */
    one(
      request: ApiRequest,
      view: EntityView,
      { rendering, type }: PreparedRetrieval,
      knows: string | undefined,
    ): Reply {
      const context = answers.contextFor(request)
      if (type !== undefined && !matchesType(type, view.entity().type))
        throw notFound(`${view.id} does not have the requested type`)
      const text = rendering.text(view)
      if (text === undefined) throw notFound(`${view.id} has none of the requested members`)
      // A flat response is always a list, even without linked entities.
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

    /** The page, if it can be found within one turn. */
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

/**
 * Conditions on linked entities require join and a sufficient joinLevel (5.7.2.4). @throws
 * ngsi-ld.bad-request-data
 */
function checkLinks({ q }: EntityQuery, { parameters }: ApiRequest): void {
  const depth = q === undefined ? 0 : linkedDepthOf(q)
  if (depth === 0) return
  if ((parameters.get('join') ?? '@none') === '@none')
    throw badRequestData('conditions on linked entities require join=flat or join=inline', 'q')
  if (depth > (wholeNumber(parameters, 'joinLevel') ?? 1))
    throw badRequestData('must not reach deeper than joinLevel', 'q')
}

export type EntityReads = ReturnType<typeof createEntityReads>
