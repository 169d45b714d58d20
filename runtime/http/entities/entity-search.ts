/**
 * Translates parameters and body selectors into a query of the broker (GS CIM 009, 5.7.2, 6.4.3.2). No other
 * file does this.
 */
import type { EntityQuery } from '#broker/state/entity-queries.ts'
import type { ApiRequest } from '#http/request/request.ts'
import { systemMembers } from '#ngsi-ld/entity/attribute.ts'
import { attributesOf } from '#ngsi-ld/federation/registration-match.ts'
import {
  type EntitySelector,
  parseTypeSelection,
  type TypeSelection,
  typeNamesOf,
} from '#ngsi-ld/query/entity-selector.ts'
import { parseGeoQuery } from '#ngsi-ld/query/geo-query.ts'
import { parseOrder } from '#ngsi-ld/query/order.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { parseScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import { listOf, pagingOf, truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { parseSourceFilter } from '#ngsi-ld/subscription/subscription-parse.ts'
import { checkName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { compileIdPattern } from '#ngsi-ld/values/pattern.ts'
import { warningLine } from '#ngsi-ld/values/warning-lines.ts'

/** Parameters that select entities. */
export const selectionParameters = [
  'type',
  'id',
  'idPattern',
  'q',
  'scopeQ',
  'csf',
  'georel',
  'geometry',
  'coordinates',
  'geoproperty',
  'expandValues',
  'jsonKeys',
] as const
const geoMembers = ['georel', 'geometry', 'coordinates']
const ordering = ['orderBy', 'orderFrom', 'orderGeometry', 'collation'] as const
/** Parameters of pages. */
export const pageParameters = ['limit', 'offset', 'count', 'pageKey'] as const

/** Parameters that select entities and order them. */
export const searchParameters = [...selectionParameters, ...ordering, 'splitEntities'] as const

/** A query needs at least one of these parameters, so that it does not select every entity (5.7.2.4). */
const conditions: readonly string[] = ['type', 'attrs', 'q', 'georel']
/** For entity queries, ids alone suffice, too. */
export const conditionsOrIds: readonly string[] = ['type', 'id', 'attrs', 'q', 'georel']

const isNoSystemName = (name: string): boolean => !systemMembers.has(name)

/** The type selection of a request. */
export function typesOf({ parameters, context }: ApiRequest): TypeSelection | undefined {
  const type = parameters.get('type')
  return type === undefined ? undefined : parseTypeSelection(type, context.expand)
}

/**
 * The query of a request (5.7.2).
 *
 * @param attrs full IRIs of the names in `attrs`.
 *
 * @param chosen selectors of a query body.
 *
 * @param sufficient parameters of which at least one is required.
 *
 * @throws ngsi-ld.bad-request-data if it would select everything, or if a part is malformed.
 */
export function entityQueryOf(
  request: ApiRequest,
  attrs: ReadonlySet<string> | undefined,
  chosen: readonly EntitySelector[] | undefined,
  sufficient = conditions,
): EntityQuery {
  const { parameters, context } = request
  const given = (name: string): string | undefined => parameters.get(name)
  const isLocal = truthOf(parameters, 'local')
  // Only the choice of sources depends on it; here only its syntax is checked.
  truthOf(parameters, 'splitEntities')
  const isEverything =
    given('type')?.trim() === '*' || chosen?.some(({ types }) => types?.kind === 'any') === true
  if (isEverything && isLocal === false)
    throw badRequestData('* selects only local entities and contradicts local=false', 'type')
  const values = valuesOf(request)
  const q = given('q') === undefined ? undefined : parseQuery(given('q')!, context.expand, values)
  const selects = (name: string): boolean => {
    if (name === 'attrs') return listOf(parameters, name)?.some(isNoSystemName) === true
    return name === 'q' ? q !== undefined && attributesOf(q).some(isNoSystemName) : parameters.has(name)
  }
  if (chosen === undefined && !sufficient.some(selects) && isLocal !== true)
    throw badRequestData(`one of ${sufficient.join(', ')} is required, or local=true`)
  const [selector, ...more] = chosen ?? []
  const alone = more.length === 0 ? selector : undefined
  const idPattern = given('idPattern') ?? alone?.idPattern
  const scopeQ = given('scopeQ')
  // The sources were filtered before; here only its syntax is checked.
  const csf = given('csf')
  if (csf !== undefined) parseSourceFilter(csf, context)
  return {
    selection: typesOf(request) ?? alone?.types,
    ids: listOf(parameters, 'id')?.map((id) => checkUri(id, 'id')) ?? alone?.ids,
    // In a selector, ids take precedence over a pattern.
    idPattern:
      idPattern === undefined || alone?.ids !== undefined
        ? undefined
        : compileIdPattern(idPattern, 'idPattern'),
    selectors: more.length > 0 ? chosen : undefined,
    scope: scopeQ === undefined ? undefined : parseScopeQuery(scopeQ),
    attrs: attrs === undefined ? undefined : [...attrs],
    q,
    geo: parseGeoQuery(
      {
        georel: given('georel'),
        geometry: given('geometry'),
        coordinates: given('coordinates'),
        // Without a geo-query the property name has no effect (6.4.3.2).
        geoproperty: geoMembers.some((name) => parameters.has(name)) ? given('geoproperty') : undefined,
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

/** Replaces short names unknown to the broker by the platform's names, if the request has no @context. */
export function withShortNames<Wanted extends Pick<ApiRequest, 'context' | 'broker'>>(
  request: Wanted,
): Wanted {
  const context = request.context.forQueries?.(request.broker.inventory.isKnown)
  return context === undefined ? request : { ...request, context }
}

/** A hint for an empty result: a stored type that has the same short name. */
export function typeHint(
  { selection }: EntityQuery,
  { broker }: Pick<ApiRequest, 'broker'>,
): string | undefined {
  for (const name of selection === undefined ? [] : typeNamesOf(selection)) {
    const other = broker.inventory.alike(name)
    if (other !== undefined)
      return warningLine(
        199,
        '-',
        `no entity of type ${name} found; type ${other} exists: send a Link header with the @context that defines it`,
      )
  }
  return undefined
}

/**
 * Parses expandValues, which decides how values in q are expanded. JSON keys are never expanded here, so
 * jsonKeys is only checked.
 */
function valuesOf({ parameters, context }: ApiRequest): { readonly expandValues?: ReadonlySet<string> } {
  const namesIn = (name: string): readonly string[] | undefined =>
    listOf(parameters, name)?.map((term) => checkName(context.expand(term), name))
  namesIn('jsonKeys')
  const expandValues = namesIn('expandValues')
  return expandValues === undefined ? {} : { expandValues: new Set(expandValues) }
}
