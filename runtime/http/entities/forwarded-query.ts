/** Translates a request into a query for context sources, from parameters or from a query body. */
import type { Json } from '#contract'
import type { ClientQuery } from '#federation/requests.ts'
import type { RequestHead } from '#http/request/request.ts'
import { attributesOf, type Interest } from '#ngsi-ld/federation/registration-match.ts'
import { parseTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { parseGeoQuery } from '#ngsi-ld/query/geo-query.ts'
import { linkedDepthOf } from '#ngsi-ld/query/query.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { parseProjection } from '#ngsi-ld/representation/projection.ts'
import { isObject, type JsonObject, listOf, textsOf } from '#ngsi-ld/values/json.ts'
import { keyword } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { selectionParameters } from './entity-search.ts'

/** The parts of a request that decide what is shown. */
type ShownRequest = Pick<RequestHead, 'parameters' | 'context'> & { readonly isGeoJson?: boolean | undefined }

/** Attributes that the response needs, if the client names them: those shown, and the geometry of GeoJSON. */
export function attrsWanted({ parameters, context: { expand }, isGeoJson }: ShownRequest) {
  const named = namesWanted(parameters, expand)
  if (named === undefined || isGeoJson !== true) return named
  return [...new Set([...named, expand(parameters.get('geometryProperty') ?? 'location')])]
}

function namesWanted(
  parameters: RequestHead['parameters'],
  expand: (term: string) => string,
): readonly string[] | undefined {
  const attrs = parameters.get('attrs')
  if (attrs !== undefined) {
    const names = attrs.split(',').map((name) => name.trim())
    const wanted = names.filter((name) => name !== '' && !entityMembers.includes(name))
    return wanted.length === 0 ? undefined : wanted.map((name) => expand(name))
  }
  const pick = parameters.get('pick')
  if (pick === undefined) return undefined
  const { names } = parseProjection(pick, expand, 'pick')
  // An entity without any of these attributes is still shown with its system members.
  return entityMembers.some((member) => names.has(member)) ? undefined : [...names]
}

const entityMembers: readonly string[] = ['id', 'type', 'scope', 'expiresAt']

/** Datasets shown in the response; undefined if all are. */
export const datasetsWanted = (text: string | undefined): readonly string[] | undefined =>
  text?.split(',').map((dataset) => dataset.trim())

/** Parameters forwarded to sources; csf filters this broker's own registrations. */
const passedOn: ReadonlySet<string> = new Set(selectionParameters.filter((name) => name !== 'csf'))

export function clientQueryOf(
  given: Readonly<Record<string, string>>,
  request: RequestHead & Pick<ShownRequest, 'isGeoJson'>,
): ClientQuery {
  const { expand } = request.context
  const { type, id, idPattern, georel, geometry, coordinates, geoproperty } = given
  const types = type === undefined ? undefined : parseTypeSelection(type, expand)
  const geo = parseGeoQuery({ georel, geometry, coordinates, geoproperty }, expand)
  const tree = given['q'] === undefined ? undefined : parseQuery(given['q'], expand)
  const q = tree === undefined ? [] : attributesOf(tree)
  // Linked entities may be held by any broker, so conditions on them are evaluated here.
  const isOurs = (name: string): boolean => name === 'q' && tree !== undefined && linkedDepthOf(tree) > 0
  const looksAt = [...q, ...(geo === undefined ? [] : [geo.property])]
  const shown = attrsWanted(request)
  // Conditions may need attributes that are not shown.
  const attrs = shown === undefined ? undefined : [...new Set([...shown, ...looksAt])]
  const interest: Interest = { ids: id?.split(','), idPattern, types, attrs }
  return {
    interests: [interest],
    parameters: Object.fromEntries(
      Object.entries(given).filter(([name]) => passedOn.has(name) && !isOurs(name)),
    ),
    datasets: datasetsWanted(given['datasetId']),
    geo,
    looksAt,
    splits: truthOf(new Map(Object.entries(given)), 'splitEntities'),
  }
}

/** Whether a query body selects every type; such a query is local (6.4.3.2). */
export function selectsEveryType({ entities }: JsonObject): boolean {
  return listOf<Json>(entities ?? []).some((selector) => {
    const type = isObject(selector) ? keyword(selector, 'type') : undefined
    return typeof type === 'string' && type.trim() === '*'
  })
}

/** The client query of a query body [NGSI-LD 5.2.23]; its selectors become one set of parameters. */
export function clientQueryOfBody(
  body: JsonObject,
  request: RequestHead & Pick<ShownRequest, 'isGeoJson'>,
): ClientQuery {
  const given: Record<string, string> = {}
  const texts = (name: string, value: Json | undefined): void => {
    if (value === undefined) return
    const items = listOf<Json>(value).filter((item) => typeof item === 'string')
    if (items.length > 0) given[name] = items.join(',')
  }
  const selectors = listOf<Json>(body['entities'] ?? []).filter(isObject)
  texts('type', [...new Set(selectors.flatMap((selector) => keyword(selector, 'type') ?? []))])
  const ids = selectors.map((selector) => keyword(selector, 'id'))
  if (!ids.includes(undefined))
    texts(
      'id',
      ids.flatMap((id) => listOf<Json>(id!)),
    )
  if (selectors.length === 1) texts('idPattern', selectors[0]!['idPattern'])
  for (const name of ['q', 'scopeQ', 'datasetId']) texts(name, body[name])
  if (typeof body['splitEntities'] === 'boolean') given['splitEntities'] = String(body['splitEntities'])
  const geoQ = body['geoQ']
  if (isObject(geoQ)) {
    for (const name of ['georel', 'geometry', 'geoproperty']) texts(name, geoQ[name])
    const { coordinates } = geoQ
    if (coordinates !== undefined)
      given['coordinates'] = typeof coordinates === 'string' ? coordinates : JSON.stringify(coordinates)
  }
  const parameters = new Map<string, string>()
  for (const name of ['attrs', 'pick', 'geometryProperty']) {
    const wanted = body[name]
    if (wanted === undefined) continue
    if (!listOf<Json>(wanted).every((one) => typeof one === 'string'))
      throw badRequestData('must be a list of names', name)
    parameters.set(name, textsOf(wanted).join(','))
  }
  return clientQueryOf(given, { ...request, parameters })
}
