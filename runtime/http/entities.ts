/**
 * Routes that create and read entities (GS CIM 009, 6.4 and 6.5). They translate between HTTP and the broker and
 * hold no rule of their own about entities; what changes one is in `entity-writes.ts`. To retrieve one is the hottest path of the interface: it awaits nothing
 * and sends the stored text.
 */
import type { EntityQuery, EntityView } from '#broker/types.ts'
import { parseEntity } from '#ngsi-ld/entity.ts'
import { parseGeoQuery } from '#ngsi-ld/geo.ts'
import { checkUri } from '#ngsi-ld/name.ts'
import { compilePattern } from '#ngsi-ld/pattern.ts'
import { badRequestData, notFound } from '#ngsi-ld/problem.ts'
import type { ProfileRules } from '#ngsi-ld/profile.ts'
import { parseQuery } from '#ngsi-ld/query-parse.ts'
import { matchesType, parseTypeSelection } from '#ngsi-ld/selection.ts'
import type { Answers } from './answer.ts'
import type { Ask, Asks } from './ask.ts'
import type { HttpContext } from './body.ts'
import { listOf, type Paging, pagingOf, truthOf } from './negotiate.ts'
import { pageLinks } from './paging.ts'
import { idOf, pathSegment } from './path.ts'
import { renderingOf, renderingParameters } from './rendering.ts'

export const entitiesPath = '/ngsi-ld/v1/entities'

export interface EntityRoutePorts {
  readonly asks: Asks
  readonly answers: Answers
  readonly rules: ProfileRules
}

const readParameters = [...renderingParameters, 'local']
const retrieveParameters = new Set<string>([...readParameters, 'type'])
const selectors = [
  'type',
  'id',
  'idPattern',
  'q',
  'georel',
  'geometry',
  'coordinates',
  'geoproperty',
] as const
const queryParameters = new Set<string>([...readParameters, ...selectors, 'limit', 'offset', 'count'])
const localParameters = new Set(['local'])

export function createEntityRoutes({ asks, answers, rules }: EntityRoutePorts) {
  const show = (c: HttpContext, ask: Ask): Response => {
    const context = answers.contextFor(ask)
    const rendering = renderingOf(ask.parameters, ask.context, context)
    truthOf(ask.parameters, 'local')
    const view = ask.broker.retrieve(c.req.param('id') ?? '')
    // Whether the id is one at all matters only where nothing was found.
    if (view === undefined) throw notFound(`no entity ${idOf(c)}`)
    const type = ask.parameters.get('type')
    if (type !== undefined) requireType(view, type, ask)
    const text = rendering.text(view)
    if (text === undefined) throw notFound(`${view.id} has nothing of what was asked for`)
    return answers.entity(ask, text, context, ask.parameters.has('join') ? undefined : view.version())
  }

  const list = (c: HttpContext, ask: Ask): Response => {
    const context = answers.contextFor(ask)
    const rendering = renderingOf(ask.parameters, ask.context, context)
    const paging = pagingOf(ask.parameters)
    const page = ask.broker.query(queryOf(ask, paging, rendering.attrs))
    const texts = page.entities.flatMap((view: EntityView) => rendering.text(view) ?? [])
    return answers.list(
      ask,
      { texts, context },
      { count: page.count, links: pageLinks(c.req.url, paging, page.more) },
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
      const ask = asks.read(c, retrieveParameters)
      return ask instanceof Promise ? ask.then((known) => show(c, known)) : show(c, ask)
    },

    query(c: HttpContext): Response | Promise<Response> {
      const ask = asks.read(c, queryParameters)
      return ask instanceof Promise ? ask.then((known) => list(c, known)) : list(c, ask)
    },
  })
}

/** @throws ngsi-ld.not-found when the entity has not the type that was asked for. */
function requireType(view: EntityView, type: string, { context }: Ask): void {
  const selection = parseTypeSelection(type, context.expand)
  if (!matchesType(selection, view.entity().type)) throw notFound(`${view.id} is no ${type}`)
}

/**
 * The query of a request (5.7.2).
 * @throws ngsi-ld.bad-request-data when it would select everything, or when a part of it is malformed.
 */
function queryOf(
  { parameters, context }: Ask,
  paging: Paging,
  attrs: ReadonlySet<string> | undefined,
): EntityQuery {
  const given = (name: string): string | undefined => parameters.get(name)
  const selects = ['type', 'attrs', 'q', 'georel', 'id'].some((name) => parameters.has(name))
  const type = given('type')
  const isLocal = truthOf(parameters, 'local') ?? type === '*'
  if (!selects && !isLocal)
    throw badRequestData('one of type, attrs, q, id or georel is needed, or local=true')
  const q = given('q')
  const idPattern = given('idPattern')
  return {
    selection: type === undefined ? undefined : parseTypeSelection(type, context.expand),
    ids: listOf(parameters, 'id')?.map((id) => checkUri(id, 'id')),
    idPattern: idPattern === undefined ? undefined : compilePattern(idPattern, 'idPattern'),
    attrs: attrs === undefined ? undefined : [...attrs],
    q: q === undefined ? undefined : parseQuery(q, context.expand),
    geo: parseGeoQuery(
      {
        georel: given('georel'),
        geometry: given('geometry'),
        coordinates: given('coordinates'),
        geoproperty: given('geoproperty'),
      },
      context.expand,
    ),
    ...paging,
  }
}
