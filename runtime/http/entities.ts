/**
 * Routes that create and read entities (GS CIM 009, 6.4, 6.5 and 6.23). They translate between HTTP and the broker and
 * hold no rule of their own about entities; what changes one is in `entity-writes.ts`. To retrieve one is the hottest
 * path of the interface: it awaits nothing and sends the stored text.
 */
import type { EntityQuery, EntityView } from '#broker/types.ts'
import { parseEntity } from '#ngsi-ld/entity.ts'
import { badRequestData, notFound } from '#ngsi-ld/problem.ts'
import type { ProfileRules } from '#ngsi-ld/profile.ts'
import { linkedDepthOf } from '#ngsi-ld/query.ts'
import { type EntitySelector, matchesType } from '#ngsi-ld/selection.ts'
import type { Answers } from './answer.ts'
import type { Ask, Asks } from './ask.ts'
import { type HttpContext, headerOf } from './body.ts'
import { entityQueryOf, pageParameters, searchParameters, typesOf } from './entity-search.ts'
import { wholeNumber } from './negotiate.ts'
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
const retrieveParameters = new Set<string>([
  ...renderingParameters,
  'type',
  'local',
  'entityMap',
  'entityMapLifetime',
])
const queryParameters = new Set<string>([...retrieveParameters, ...searchParameters, ...pageParameters])
const bodyQueryParameters = new Set<string>([...pageParameters, 'local', 'options', 'format'])

export function createEntityRoutes({ asks, answers, rules }: EntityRoutePorts) {
  const renderingFor = (ask: Ask): Rendering =>
    renderingOf(ask.parameters, {
      context: ask.context,
      shown: answers.contextFor(ask),
      follow: ask.broker.retrieve,
      isGeoJson: ask.isGeoJson,
      amendment: ask.amendment,
    })

  const show = (c: HttpContext, ask: Ask): Response => {
    const context = answers.contextFor(ask)
    const rendering = renderingFor(ask)
    const type = typesOf(ask)
    const view = ask.broker.retrieve(c.req.param('id') ?? '')
    // Whether the id is one at all matters only where nothing was found.
    if (view === undefined) throw notFound(`no entity ${idOf(c)}`)
    if (type !== undefined && !matchesType(type, view.entity().type))
      throw notFound(`${view.id} is of other types`)
    const text = rendering.text(view)
    if (text === undefined) throw notFound(`${view.id} has nothing of what was asked for`)
    // A flat answer is a list, whether there is somebody linked or not.
    const linked = rendering.linked?.([view])
    if (linked !== undefined) return answers.list(ask, { texts: [text, ...linked], context })
    if (rendering.joins === true) return answers.entity(ask, text, context)
    const knows = headerOf(c, 'if-none-match')
    return answers.version(ask, text, context, { version: view.version(), knows })
  }

  const list = (c: HttpContext, ask: Ask, chosen?: readonly EntitySelector[]): Response => {
    const context = answers.contextFor(ask)
    const rendering = renderingFor(ask)
    // What goes by a map is chosen already.
    const selectors = chosen ?? (c.env.map?.page === undefined ? undefined : [])
    const query = entityQueryOf(ask, rendering.attrs, selectors)
    // Components find by what entities are linked to, and have no use for those.
    if (c.env.isWithin !== true) checkLinks(query, ask)
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
      await (await ask.enter()).create(entity, asks.by(c))
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

/** Conditions on linked entities go only with these (5.7.2.4). @throws ngsi-ld.bad-request-data */
function checkLinks({ q }: EntityQuery, { parameters }: Ask): void {
  const depth = q === undefined ? 0 : linkedDepthOf(q)
  if (depth === 0) return
  if ((parameters.get('join') ?? '@none') === '@none')
    throw badRequestData('conditions on linked entities go only with join', 'q')
  if (depth > (wholeNumber(parameters, 'joinLevel') ?? 1))
    throw badRequestData('reaches further than joinLevel', 'q')
}
