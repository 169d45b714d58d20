/**
 * Builds the requests to context sources for a client's query (GS CIM 009, 4.3.6.2). A request is limited
 * to the source's claims, to conditions that the source can evaluate, and to operations that it offers.
 */
import { limits } from '#base/limits/limits.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { baseOf, type EntityInfo, modeOf, type Registration } from '#ngsi-ld/federation/registration.ts'
import {
  holdsId,
  type Interest,
  isOfInterest,
  mayHoldGeometry,
  namesOf,
} from '#ngsi-ld/federation/registration-match.ts'
import { offers, type SourceOperation } from '#ngsi-ld/federation/registration-operations.ts'
import type { GeoQuery } from '#ngsi-ld/query/geo-query.ts'
import { compilePattern } from '#ngsi-ld/values/pattern.ts'
import { isTunnelled } from '#ngsi-ld/values/tunnel-uri.ts'
import type { SourceRequest } from './source-form.ts'
import type { Requester } from './sources.ts'

/** The query of a client; names and texts are in the context of its request. */
export interface ClientQuery {
  readonly interests: readonly Interest[]
  /** Parameters that can be sent unchanged: type, id, idPattern, q, scopeQ, the geo set. */
  readonly parameters: Readonly<Record<string, string>>
  /** Datasets to show, `@none` for default instances; all if omitted. */
  readonly datasets?: readonly string[] | undefined
  /** The geo-query, for registrations that state a location. */
  readonly geo?: GeoQuery | undefined
  /** Attributes used in q and the geo-query, as full IRIs. */
  readonly looksAt: readonly string[]
  /**
   * Whether several brokers may hold parts of one entity (splitEntities). If true, no source evaluates
   * conditions. If false, each source holds its entities whole. If omitted, sources evaluate conditions, and
   * entities found at one are completed from the others.
   */
  readonly splits?: boolean | undefined
}

export interface ReadRequest {
  readonly requester: Requester
  readonly broker: TenantBroker
  readonly registrations: readonly Registration[]
  readonly context: Context
  /** Headers with the context. */
  readonly headers: Readonly<Record<string, string>>
  /** Parameters that make capable sources create an entity map. */
  readonly mapParameters?: Readonly<Record<string, string>> | undefined
}

const sysAttrs = { options: 'sysAttrs' }
/** Conditions that need all attributes they use. */
const conditions: ReadonlySet<string> = new Set(['q', 'georel', 'geometry', 'coordinates', 'geoproperty'])

/** Splits ids into lists that fit into a URL; an id with a comma is a list of its own. */
export function splitIds(all: readonly string[]): readonly (readonly string[])[] {
  const [odd = [], plain = []] = [true, false].map((is) => all.filter((id) => id.includes(',') === is))
  const most = limits.sourceIdsMax.value
  const parts = Array.from({ length: Math.ceil(plain.length / most) }, (_, part) =>
    plain.slice(part * most, (part + 1) * most),
  )
  return [...parts, ...odd.map((id) => [id])]
}

/** Whether a source evaluates the conditions of a query itself. */
export function evaluatesConditions(registration: Registration, clientQuery: ClientQuery): boolean {
  const { parameters, splits } = clientQuery
  if (splits === true) return false
  const has = (name: string): boolean => parameters[name] !== undefined
  return has('scopeQ') || ((has('q') || has('georel')) && !isBlind(registration, clientQuery))
}

/** Whether a source lacks an attribute used in the conditions. */
function isBlind(registration: Registration, clientQuery: ClientQuery): boolean {
  const named = concerned(registration, clientQuery).map(namesOf)
  return (
    !named.includes(undefined) &&
    !clientQuery.looksAt.every((name) => named.some((names) => names!.has(name)))
  )
}

const concerned = ({ information }: Registration, { interests }: ClientQuery) =>
  information.filter((info) => interests.some((interest) => isOfInterest(interest, info)))

/** The request for entities to a source; undefined if it holds nothing relevant. */
export function requestFor(
  registration: Registration,
  clientQuery: ClientQuery,
  one: string | undefined,
  { context, headers }: ReadRequest,
): SourceRequest | undefined {
  const given = narrowed(registration, clientQuery, context)
  if (given === undefined) return undefined
  const contexts = [context] as const
  const ways: readonly [SourceOperation, () => SourceRequest][] = [
    [
      'retrieveEntity',
      () => {
        const { attrs: names } = given
        const parameters = names === undefined ? sysAttrs : { attrs: names, ...sysAttrs }
        return {
          method: 'GET',
          path: pathOf(`/entities/${encodeURIComponent(one!)}`, parameters),
          headers,
          contexts,
        }
      },
    ],
    [
      'queryEntity',
      () => ({ method: 'GET', path: pathOf('/entities', { ...given, ...sysAttrs }), headers, contexts }),
    ],
    ['queryBatch', () => ({ ...postQuery(given, headers), contexts })],
  ]
  const usable = one === undefined ? ways.slice(1) : ways
  return usable.find(([operation]) => offers(registration, operation))?.[1]()
}

/** The request for histories within the time window. */
export function historyRequestFor(
  registration: Registration,
  clientQuery: ClientQuery & { readonly times: Readonly<Record<string, string>> },
  one: string | undefined,
  { context, headers }: ReadRequest,
): SourceRequest | undefined {
  const mode = modeOf(registration)
  // Conditions apply to merged histories, unless the source is the only holder or holds its entities whole.
  const isSole = mode === 'exclusive' || mode === 'redirect' || clientQuery.splits === false
  const all = narrowed(registration, clientQuery, context)
  if (all === undefined) return undefined
  const given = Object.fromEntries(Object.entries(all).filter(([name]) => isSole || !conditions.has(name)))
  const contexts = [context] as const
  const { attrs } = given
  const wanted = { ...clientQuery.times, ...(attrs === undefined ? {} : { attrs }), ...sysAttrs }
  if (one !== undefined && offers(registration, 'retrieveTemporal')) {
    return {
      method: 'GET',
      path: pathOf(`/temporal/entities/${encodeURIComponent(one)}`, wanted),
      headers,
      contexts,
    }
  }
  // A temporal query requires a time.
  const isQuery = offers(registration, 'queryTemporal') && clientQuery.times['timerel'] !== undefined
  return isQuery
    ? { method: 'GET', path: pathOf('/temporal/entities', { ...given, ...wanted }), headers, contexts }
    : undefined
}

/** The parameters for a source, limited to its claims; undefined if it holds nothing relevant. */
function narrowed(
  registration: Registration,
  clientQuery: ClientQuery,
  context: Context,
): Readonly<Record<string, string>> | undefined {
  const { datasets } = clientQuery
  if (datasets !== undefined && registration.datasetId?.some((one) => datasets.includes(one)) === false)
    return undefined
  if (
    clientQuery.geo !== undefined &&
    clientQuery.splits !== true &&
    !mayHoldGeometry(registration, clientQuery.geo)
  )
    return undefined
  const infos = concerned(registration, clientQuery)
  if (infos.length === 0) return undefined
  const wanted = clientQuery.interests[0]?.attrs
  const named = infos.map(namesOf)
  const claimed = named.includes(undefined) ? undefined : new Set(named.flatMap((names) => [...names!]))
  const attrs = claimed === undefined ? wanted : [...claimed].filter((name) => wanted?.includes(name) ?? true)
  const isUnseen = isBlind(registration, clientQuery)
  const isUnfit = (name: string): boolean =>
    clientQuery.splits === true ? conditions.has(name) || name === 'scopeQ' : isUnseen && conditions.has(name)
  const entities = infos.flatMap((info) => info.entities ?? [])
  const types = [...new Set(entities.flatMap((entity) => entity.types))]
  const given: Record<string, string> = {}
  for (const [name, value] of Object.entries(clientQuery.parameters)) if (!isUnfit(name)) given[name] = value
  if (given['type'] === undefined && types.length > 0) given['type'] = types.map(context.compact).join(',')
  if (infos.every((info) => info.entities !== undefined)) {
    const restricted = restrictedIds(entities, clientQuery.interests[0]?.ids, given['idPattern'])
    if (restricted === undefined) return undefined
    Object.assign(given, restricted)
  }
  if (attrs !== undefined) given['attrs'] = attrs.map(context.compact).join(',')
  return given
}

/**
 * The ids, or the id pattern, that both the request and the registration allow; undefined if there are none.
 */
function restrictedIds(
  entities: readonly EntityInfo[],
  wanted: readonly string[] | undefined,
  idPattern: string | undefined,
): Readonly<Record<string, string>> | undefined {
  if (wanted !== undefined) {
    const common = wanted.filter((one) => entities.some((entity) => holdsId(entity, one)))
    return common.length === 0 ? undefined : { id: common.join(',') }
  }
  const ids = entities.flatMap((entity) => entity.id ?? [])
  if (ids.length === entities.length) {
    const pattern = idPattern === undefined ? undefined : compilePattern(idPattern)
    const common = [...new Set(ids)].filter((one) => pattern?.test(one) ?? true)
    return common.length === 0 ? undefined : { id: common.join(',') }
  }
  const patterns = new Set(entities.map((entity) => entity.idPattern))
  const [only] = patterns
  const isOne = idPattern === undefined && patterns.size === 1 && only !== undefined
  return isOne && entities.every((entity) => entity.id === undefined) ? { idPattern: only } : {}
}

const basePath = '/ngsi-ld/v1'

function pathOf(path: string, parameters: Readonly<Record<string, string>>): string {
  const pairs = Object.keys(parameters)
    .sort()
    .map((name) => `${name}=${encodeURIComponent(parameters[name]!)}`)
  return `${basePath}${path}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`
}

/** The client query as a query body [NGSI-LD 5.2.23]. */
function postQuery(
  given: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>>,
): Omit<SourceRequest, 'contexts'> {
  const { type, id, idPattern, attrs, q, scopeQ, georel, geometry, coordinates, geoproperty } = given
  const ids = id?.split(',')
  const selector = {
    ...(type === undefined ? {} : { type }),
    ...(ids === undefined ? {} : { id: ids.length === 1 ? ids[0] : ids }),
    ...(idPattern === undefined ? {} : { idPattern }),
  }
  const body = {
    type: 'Query',
    ...(Object.keys(selector).length === 0 ? {} : { entities: [selector] }),
    ...(attrs === undefined ? {} : { attrs: attrs.split(',') }),
    ...(q === undefined ? {} : { q }),
    ...(scopeQ === undefined ? {} : { scopeQ }),
    ...(georel === undefined ? {} : { geoQ: { georel, geometry, coordinates, geoproperty } }),
  }
  return {
    method: 'POST',
    path: pathOf('/entityOperations/query', sysAttrs),
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}

/** The request for the next page from a Link header, at the same source only. */
export function nextPage(
  request: SourceRequest,
  { endpoint }: Registration,
  link: string | readonly string[] | undefined,
): SourceRequest | undefined {
  const text = typeof link === 'string' ? link : (link ?? []).join(',')
  const found = /<([^<>]*)>\s*;[^<]*rel="?next"?/i.exec(text)
  if (found === null) return undefined
  // A source behind a tunnel has no address of its own.
  const base = isTunnelled(endpoint) ? 'http://localhost' : baseOf(endpoint)
  const url = URL.parse(found[1]!, base + request.path)
  if (url === null || url.origin !== new URL(base).origin) return undefined
  const at = url.pathname.indexOf(`${basePath}/`)
  const path = at < 0 ? undefined : url.pathname.slice(at) + url.search
  return path === undefined || path === request.path ? undefined : { ...request, path }
}
