/**
 * What a request wants to know, as sources can be asked it: from parameters, or from a Query in a body.
 */
import type { Json } from '#contract'
import type { Question } from '#federation/requests.ts'
import { parseGeoQuery } from '#ngsi-ld/geo.ts'
import { isObject, type JsonObject, listOf, textsOf } from '#ngsi-ld/json.ts'
import { badRequestData } from '#ngsi-ld/problem.ts'
import { linkedDepthOf } from '#ngsi-ld/query.ts'
import { parseQuery } from '#ngsi-ld/query-parse.ts'
import { attributesOf, type Interest } from '#ngsi-ld/registration-match.ts'
import { parseTypeSelection } from '#ngsi-ld/selection.ts'
import type { AskHead } from './ask.ts'
import { selecting } from './entity-search.ts'
import { truthOf } from './negotiate.ts'

/** Attributes that the answer will show, where the client says so. */
export function attrsWanted({ parameters, context }: AskHead): readonly string[] | undefined {
  const text = parameters.get('attrs') ?? parameters.get('pick')
  if (text === undefined) return undefined
  const names = text.replaceAll(/\{[^}]*\}/g, '').split(/[,|]/)
  const wanted = names.map((name) => name.trim()).filter((name) => !/^(?:id|type|scope|)$/.test(name))
  return wanted.length === 0 ? undefined : wanted.map(context.expand)
}

/** A filter of our sources says nothing to them. */
const passedOn: ReadonlySet<string> = new Set(selecting.filter((name) => name !== 'csf'))

export function questionOf(given: Readonly<Record<string, string>>, ask: AskHead): Question {
  const { expand } = ask.context
  const { type, id, idPattern, georel, geometry, coordinates, geoproperty } = given
  const types = type === undefined ? undefined : parseTypeSelection(type, expand)
  const geo = parseGeoQuery({ georel, geometry, coordinates, geoproperty }, expand)
  const tree = given['q'] === undefined ? undefined : parseQuery(given['q'], expand)
  const q = tree === undefined ? [] : attributesOf(tree)
  // Entities that these are linked to may be anywhere, so that is judged here.
  const isOurs = (name: string): boolean => name === 'q' && tree !== undefined && linkedDepthOf(tree) > 0
  const looksAt = [...q, ...(geo === undefined ? [] : [geo.property])]
  const shown = attrsWanted(ask)
  // What is not shown may still decide who is found.
  const attrs = shown === undefined ? undefined : [...new Set([...shown, ...looksAt])]
  const interest: Interest = { ids: id?.split(','), idPattern, types, attrs }
  return {
    interests: [interest],
    parameters: Object.fromEntries(
      Object.entries(given).filter(([name]) => passedOn.has(name) && !isOurs(name)),
    ),
    looksAt,
    splits: truthOf(new Map(Object.entries(given)), 'splitEntities'),
  }
}

/** The same of a Query in a body [NGSI-LD 5.2.23]: its selectors as one set of parameters. */
export function questionOfBody(body: JsonObject, ask: AskHead): Question {
  const given: Record<string, string> = {}
  const texts = (name: string, value: Json | undefined): void => {
    if (value === undefined) return
    const items = listOf<Json>(value).filter((item) => typeof item === 'string')
    if (items.length > 0) given[name] = items.join(',')
  }
  const selectors = listOf<Json>(body['entities'] ?? []).filter(isObject)
  texts('type', [...new Set(selectors.flatMap((selector) => selector['type'] ?? []))])
  if (selectors.every((selector) => selector['id'] !== undefined))
    texts(
      'id',
      selectors.flatMap((selector) => listOf<Json>(selector['id']!)),
    )
  if (selectors.length === 1) texts('idPattern', selectors[0]!['idPattern'])
  for (const name of ['q', 'scopeQ']) texts(name, body[name])
  if (typeof body['splitEntities'] === 'boolean') given['splitEntities'] = String(body['splitEntities'])
  const geoQ = body['geoQ']
  if (isObject(geoQ)) {
    for (const name of ['georel', 'geometry', 'geoproperty']) texts(name, geoQ[name])
    const { coordinates } = geoQ
    if (coordinates !== undefined)
      given['coordinates'] = typeof coordinates === 'string' ? coordinates : JSON.stringify(coordinates)
  }
  const wanted = body['attrs'] ?? body['pick']
  if (wanted !== undefined && !listOf<Json>(wanted).every((name) => typeof name === 'string'))
    throw badRequestData('must be names', 'attrs')
  const parameters = new Map<string, string>(
    wanted === undefined ? [] : [['attrs', textsOf(wanted).join(',')]],
  )
  return questionOf(given, { ...ask, parameters })
}
