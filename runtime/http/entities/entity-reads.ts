/**
 * What is answered to those who read entities (GS CIM 009, 5.7): from what a request wishes, which its parameters and its
 * context say alone, and a broker. A wish holds nothing of one request but that, so it may be kept and used again.
 */
import { limits } from '#base/limits/limits.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import { wholeNumber } from '#http/request/negotiate.ts'
import { type PageLinker, pageLinker } from '#http/request/paging.ts'
import { type Ask, withWarning } from '#http/request/request.ts'
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

export interface RetrievalWish {
  readonly rendering: Rendering
  readonly type: TypeSelection | undefined
}

export interface QueryWish {
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
  const renderingFor = (ask: Ask): Rendering => {
    let joinedBytes = 0
    return renderingOf(ask.parameters, {
      context: ask.context,
      shown: answers.contextFor(ask),
      follow: (id, types) => {
        const found = ask.broker.retrieve(id)
        joinedBytes += found?.text().length ?? 0
        if (joinedBytes > limits.joinedBytesMax.value)
          throw tooComplex(`linked entities of more than ${limits.joinedBytesMax.value} characters`)
        // Only whoever says of which type it is links to what others hold (4.5.23).
        if (found === undefined && types.length > 0) ask.broker.linked?.(id, types)
        return found
      },
      isGeoJson: ask.isGeoJson,
      amendment: ask.amendment,
    })
  }

  return Object.freeze({
    /** @throws ngsi-ld.invalid-request, ngsi-ld.bad-request-data */
    retrievalWish: (ask: Ask): RetrievalWish => ({ rendering: renderingFor(ask), type: typesOf(ask) }),

    /** @throws ngsi-ld.invalid-request, ngsi-ld.bad-request-data */
    queryWish(ask: Ask, { url, chosen, isWithin = false }: QueryOrigin): QueryWish {
      const rendering = renderingFor(ask)
      const query = entityQueryOf(ask, rendering.attrs, chosen, conditionsOrIds)
      // Components find by what entities are linked to, and have no use for those.
      if (!isWithin) checkLinks(query, ask)
      return { rendering, query, links: pageLinker(url, query) }
    },

    /**
     * One entity, or that it is as the client `knows` it.
     * @throws ngsi-ld.not-found where it is of other types, or has nothing of what is asked for.
     */
    one(ask: Ask, view: EntityView, { rendering, type }: RetrievalWish, knows: string | undefined): Reply {
      const context = answers.contextFor(ask)
      if (type !== undefined && !matchesType(type, view.entity().type))
        throw notFound(`${view.id} is of other types`)
      const text = rendering.text(view)
      if (text === undefined) throw notFound(`${view.id} has nothing of what was asked for`)
      // A flat answer is a list, whether there is somebody linked or not.
      const linked = rendering.linked?.([view])
      if (linked !== undefined) return answers.page(ask, { texts: [text, ...linked], context })
      if (rendering.joins === true) return answers.whole(ask, text, context)
      return answers.version(ask, text, context, { version: view.version(), knows })
    },

    page(ask: Ask, wish: QueryWish): Reply | Promise<Reply> {
      const found = ask.broker.query(wish.query, ask.broker.linked)
      return found instanceof Promise
        ? found.then((page) => pageReply(ask, wish, page))
        : pageReply(ask, wish, found)
    },

    /** The same, where it is found within one turn. */
    shortPage(ask: Ask, wish: QueryWish): Reply | undefined {
      const found = ask.broker.shortQuery(wish.query)
      return found && pageReply(ask, wish, found)
    },
  })

  function pageReply(ask: Ask, { rendering, query, links }: QueryWish, page: QueryPage): Reply {
    const { entities, count } = page
    const context = answers.contextFor(ask)
    const texts: string[] = []
    for (const view of entities) {
      const text = rendering.text(view)
      if (text !== undefined) texts.push(text)
    }
    const linked = rendering.linked?.(entities) ?? []
    const isFirst = query.offset === 0 && query.after === undefined
    const hint = entities.length === 0 && isFirst ? typeHint(query, ask) : undefined
    return answers.page(
      withWarning(ask, hint),
      { texts: linked.length === 0 ? texts : [...texts, ...linked], context },
      { count, links: links(page) },
    )
  }
}

/** Conditions on linked entities go only with these (5.7.2.4). @throws ngsi-ld.bad-request-data */
function checkLinks({ q }: EntityQuery, { parameters }: Ask): void {
  const depth = q === undefined ? 0 : linkedDepthOf(q)
  if (depth === 0) return
  if ((parameters.get('join') ?? '@none') === '@none')
    throw badRequestData('conditions on linked entities go only with join', 'q')
  if (depth > (wholeNumber(parameters, 'joinLevel') ?? 1))
    throw badRequestData('reaches further than joinLevel', 'q')
}

export type EntityReads = ReturnType<typeof createEntityReads>
