/**
 * Routes that create and read entities (GS CIM 009, 6.4, 6.5 and 6.23). They translate between HTTP and the broker and
 * hold no rule of their own about entities; what changes one is in `entity-writes.ts`. To retrieve one is the hottest
 * path of the interface: it awaits nothing and sends the stored text.
 */
import type { EntityQuery, EntityView } from '#broker/types.ts'
import { parseEntity } from '#ngsi-ld/entity.ts'
import { parseGeoQuery } from '#ngsi-ld/geo.ts'
import { checkName, checkUri } from '#ngsi-ld/name.ts'
import { parseOrder } from '#ngsi-ld/order.ts'
import { compilePattern } from '#ngsi-ld/pattern.ts'
import { badRequestData, notFound } from '#ngsi-ld/problem.ts'
import type { ProfileRules } from '#ngsi-ld/profile.ts'
import { parseQuery } from '#ngsi-ld/query-parse.ts'
import { parseScopeQuery } from '#ngsi-ld/scope-query.ts'
import {
  type EntitySelector,
  matchesType,
  parseTypeSelection,
  type TypeSelection,
} from '#ngsi-ld/selection.ts'
import type { Answers } from './answer.ts'
import type { Ask, Asks } from './ask.ts'
import type { HttpContext } from './body.ts'
import { listOf, type Parameters, pagingOf, truthOf } from './negotiate.ts'
import { pageLinks } from './paging.ts'
import { idOf, pathSegment } from './path.ts'
import { readQueryBody } from './query-body.ts'
import { type Rendering, renderingOf, renderingParameters } from './rendering.ts'

export const entitiesPath = '/ngsi-ld/v1/entities'

export interface EntityRoutePorts {
  readonly asks: Asks
  readonly answers: Answers
  readonly rules: ProfileRules
}

const localParameters = new Set(['local'])
const retrieveParameters = new Set<string>([...renderingParameters, 'type', 'local'])
const selectors = [
  'type',
  'id',
  'idPattern',
  'q',
  'scopeQ',
  'georel',
  'geometry',
  'coordinates',
  'geoproperty',
  'expandValues',
  'jsonKeys',
] as const
const order = ['orderBy', 'orderFrom', 'orderGeometry', 'collation'] as const
const paging = ['limit', 'offset', 'count', 'pageKey'] as const
const queryParameters = new Set<string>([...retrieveParameters, ...selectors, ...order, ...paging])
const bodyQueryParameters = new Set<string>([...paging, 'local', 'options', 'format'])

export function createEntityRoutes({ asks, answers, rules }: EntityRoutePorts) {
  const renderingFor = (ask: Ask): Rendering =>
    renderingOf(ask.parameters, {
      context: ask.context,
      shown: answers.contextFor(ask),
      follow: ask.broker.retrieve,
      isGeoJson: ask.isGeoJson,
    })

  const show = (c: HttpContext, ask: Ask): Response => {
    const context = answers.contextFor(ask)
    const rendering = renderingFor(ask)
    truthOf(ask.parameters, 'local')
    const type = typesOf(ask.parameters, ask)
    const view = ask.broker.retrieve(c.req.param('id') ?? '')
    // Whether the id is one at all matters only where nothing was found.
    if (view === undefined) throw notFound(`no entity ${idOf(c)}`)
    if (type !== undefined && !matchesType(type, view.entity().type))
      throw notFound(`${view.id} is of other types`)
    const text = rendering.text(view)
    if (text === undefined) throw notFound(`${view.id} has nothing of what was asked for`)
    const linked = rendering.linked?.([view]) ?? []
    if (linked.length > 0) return answers.list(ask, { texts: [text, ...linked], context })
    return answers.entity(ask, text, context, rendering.joins === true ? undefined : view.version())
  }

  const list = (c: HttpContext, ask: Ask, chosen?: readonly EntitySelector[]): Response => {
    const context = answers.contextFor(ask)
    const rendering = renderingFor(ask)
    const query = queryOf(ask, rendering.attrs, chosen)
    const { entities, count, more, next } = ask.broker.query(query)
    const texts = entities.flatMap((view: EntityView) => rendering.text(view) ?? [])
    const linked = rendering.linked?.(entities) ?? []
    return answers.list(
      ask,
      { texts: linked.length === 0 ? texts : [...texts, ...linked], context },
      { count, links: pageLinks(c.req.url, query, more, next) },
    )
  }

  return Object.freeze({
    async create(c: HttpContext): Promise<Response> {
      const ask = await asks.body(c, { known: localParameters, creates: true })
      const entity = parseEntity(ask.body, ask.context)
      await (await ask.enter()).create(entity, 'http')
      return answers.created(
        ask,
        `${entitiesPath}/${pathSegment(entity.id)}`,
        rules.createAnswersId ? entity.id : undefined,
      )
    },

    retrieve(c: HttpContext): Response | Promise<Response> {
      const ask = asks.readEntities(c, retrieveParameters)
      return ask instanceof Promise ? ask.then((known) => show(c, known)) : show(c, ask)
    },

    query(c: HttpContext): Response | Promise<Response> {
      const ask = asks.readEntities(c, queryParameters)
      return ask instanceof Promise ? ask.then((known) => list(c, known)) : list(c, ask)
    },

    /** POST entityOperations/query: the members of the body are what parameters are elsewhere (5.2.23). */
    async queryByBody(c: HttpContext): Promise<Response> {
      const { body, ...ask } = await asks.query(c, bodyQueryParameters)
      const { parameters, entities } = readQueryBody(body, ask.context.expand)
      return list(c, { ...ask, parameters: new Map([...ask.parameters, ...parameters]) }, entities)
    },
  })
}

function typesOf(parameters: Parameters, { context }: Ask): TypeSelection | undefined {
  const type = parameters.get('type')
  return type === undefined ? undefined : parseTypeSelection(type, context.expand)
}

/**
 * The query of a request (5.7.2).
 * @throws ngsi-ld.bad-request-data when it would select everything, or when a part of it is malformed.
 */
function queryOf(
  ask: Ask,
  attrs: ReadonlySet<string> | undefined,
  chosen: readonly EntitySelector[] | undefined,
): EntityQuery {
  const { parameters, context } = ask
  const given = (name: string): string | undefined => parameters.get(name)
  const isLocal = truthOf(parameters, 'local')
  if (given('type')?.trim() === '*' && isLocal === false)
    throw badRequestData('* is about what is here, so local=false contradicts it', 'type')
  const selects =
    chosen !== undefined || ['type', 'attrs', 'q', 'georel'].some((name) => parameters.has(name))
  if (!selects && isLocal !== true)
    throw badRequestData('one of type, attrs, q or georel is needed, or local=true')
  const [selector, ...more] = chosen ?? []
  const alone = more.length === 0 ? selector : undefined
  const idPattern = given('idPattern') ?? alone?.idPattern
  const q = given('q')
  const scopeQ = given('scopeQ')
  return {
    selection: typesOf(parameters, ask) ?? alone?.types,
    ids: listOf(parameters, 'id')?.map((id) => checkUri(id, 'id')) ?? alone?.ids,
    // Ids win over a pattern in a selector.
    idPattern:
      idPattern === undefined || alone?.ids !== undefined
        ? undefined
        : compilePattern(idPattern, 'idPattern'),
    selectors: more.length > 0 ? chosen : undefined,
    scope: scopeQ === undefined ? undefined : parseScopeQuery(scopeQ),
    attrs: attrs === undefined ? undefined : [...attrs],
    q: q === undefined ? undefined : parseQuery(q, context.expand, valuesOf(ask)),
    geo: parseGeoQuery(
      {
        georel: given('georel'),
        geometry: given('geometry'),
        coordinates: given('coordinates'),
        geoproperty: given('geoproperty'),
      },
      context.expand,
    ),
    order: parseOrder(
      {
        orderBy: given('orderBy'),
        orderFrom: given('orderFrom'),
        orderGeometry: given('orderGeometry'),
        collation: given('collation'),
      },
      context.expand,
    ),
    ...pagingOf(parameters),
    after: given('pageKey'),
  }
}

/** Names that tell how values in q are read. Keys within JSON are never names here, so jsonKeys has nothing to add. */
function valuesOf({ parameters, context }: Ask): { readonly expandValues?: ReadonlySet<string> } {
  const namesIn = (name: string): readonly string[] | undefined =>
    listOf(parameters, name)?.map((term) => checkName(context.expand(term), name))
  namesIn('jsonKeys')
  const expandValues = namesIn('expandValues')
  return expandValues === undefined ? {} : { expandValues: new Set(expandValues) }
}
