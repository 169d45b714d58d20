/**
 * Matches registrations: whether a discovery query finds one [NGSI-LD 5.10.2, 5.12], whether two exclude each
 * other [5.9.2], and which part of an entity one claims [4.3.6]. A registration without entities covers all
 * entities, one without names all attributes.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { TemporalSelection } from '#ngsi-ld/history/temporal-query.ts'
import { matchesType, type TypeSelection, typeNamesOf } from '#ngsi-ld/query/entity-selector.ts'
import { compileGeometryTest, type GeoQuery } from '#ngsi-ld/query/geo-query.ts'
import type { QueryTree } from '#ngsi-ld/query/query.ts'
import { compileQuery } from '#ngsi-ld/query/query-match.ts'
import { matchesScope, type ScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { compilePattern } from '#ngsi-ld/values/pattern.ts'
import {
  type EntityInfo,
  modeOf,
  type Registration,
  type RegistrationInfo,
  type RegistrationView,
  renderRegistration,
  type TimeInterval,
} from './registration.ts'

/** The entities and attributes of interest; absent members do not restrict. */
export interface Interest {
  readonly ids?: readonly string[] | undefined
  readonly idPattern?: string | undefined
  readonly types?: TypeSelection | undefined
  /** At least one of them. */
  readonly attrs?: readonly string[] | undefined
  /** Excluded attributes. */
  readonly omit?: readonly string[] | undefined
}

/** The time that the sources must cover. Milliseconds UTC. */
export interface TimeInterest {
  readonly timerel: 'before' | 'after' | 'between'
  readonly timeAtMs: number
  readonly endTimeAtMs?: number | undefined
  readonly timeproperty: string
}

export interface Discovery {
  /** At least one of them must match. */
  readonly interests: readonly Interest[]
  readonly geo?: GeoQuery | undefined
  readonly scope?: ScopeQuery | undefined
  readonly time?: TimeInterest | undefined
  readonly csf?: QueryTree | undefined
}

/** The registration with its matching information only; undefined if it does not match. */
export function discovered(discovery: Discovery, registration: Registration): Registration | undefined {
  if (!matchesTime(discovery.time, registration)) return undefined
  if (discovery.geo !== undefined && !matchesGeo(discovery.geo, registration)) return undefined
  if (discovery.scope !== undefined && !matchesScope(discovery.scope, registration.scope)) return undefined
  if (discovery.csf !== undefined && !passes(discovery.csf, registration)) return undefined
  const information = registration.information.filter((info) =>
    discovery.interests.some((interest) => isOfInterest(interest, info, matchesType)),
  )
  return information.length === 0 ? undefined : { ...registration, information }
}

/** Whether a registration satisfies a context source filter. */
export const passes = (csf: QueryTree, registration: Registration): boolean =>
  compileQuery(csf)(asEntity(registration))

/** Whether types registered together match a selection. */
type TypeTest = (selection: TypeSelection, types: readonly string[]) => boolean

/**
 * If a selection requires several types at once, a source may hold an entity whose other types are known only
 * to another source.
 */
const mayBe: TypeTest = (selection, types) => {
  if (selection.kind === 'any') return true
  const wanted = typeNamesOf(selection)
  return types.some((type) => wanted.includes(type))
}

/** Whether the information matches the interest at least in part. */
export function isOfInterest(interest: Interest, info: RegistrationInfo, isOf: TypeTest = mayBe): boolean {
  const named = namesOf(info)
  if (named !== undefined && named.size > 0 && [...named].every((name) => interest.omit?.includes(name)))
    return false
  if (named !== undefined && interest.attrs !== undefined && !interest.attrs.some((name) => named.has(name)))
    return false
  return info.entities?.some((entity) => mayHave(interest, entity, isOf)) ?? true
}

/** The attributes in the information; undefined means all. */
export function namesOf({
  propertyNames,
  relationshipNames,
}: RegistrationInfo): ReadonlySet<string> | undefined {
  if (propertyNames === undefined && relationshipNames === undefined) return undefined
  return new Set([...(propertyNames ?? []), ...(relationshipNames ?? [])])
}

function mayHave({ ids, idPattern, types }: Interest, entity: EntityInfo, isOf: TypeTest): boolean {
  if (types !== undefined && !isOf(types, entity.types)) return false
  if (ids !== undefined && !ids.some((id) => holdsId(entity, id))) return false
  if (idPattern === undefined || entity.id === undefined) return true
  return compilePattern(idPattern).test(entity.id)
}

/** Whether registered entities include one with this id. */
export function holdsId({ id, idPattern }: EntityInfo, wanted: string): boolean {
  if (id !== undefined) return id === wanted
  return idPattern === undefined || compilePattern(idPattern).test(wanted)
}

/**
 * The attributes of an entity that a registration claims: 'all', a set of names, or undefined if none.
 * Undefined types do not restrict.
 */
export function claimOf(
  registration: Registration,
  id: string,
  types: readonly string[] | undefined,
): 'all' | ReadonlySet<string> | undefined {
  const names = new Set<string>()
  let claims = false
  for (const info of registration.information) {
    const holds = info.entities?.some(
      (entity) =>
        holdsId(entity, id) && (types === undefined || entity.types.some((type) => types.includes(type))),
    )
    if (holds === false) continue
    claims = true
    const named = namesOf(info)
    if (named === undefined) return 'all'
    for (const name of named) names.add(name)
  }
  return claims ? names : undefined
}

/**
 * Whether two registrations exclude each other: one is exclusive, the other exclusive or redirect, and they
 * overlap.
 */
export function conflicts(a: Registration, b: Registration): boolean {
  const modes = [modeOf(a), modeOf(b)]
  if (!modes.includes('exclusive')) return false
  if (modes.some((mode) => mode !== 'exclusive' && mode !== 'redirect')) return false
  return a.information.some((mine) => b.information.some((other) => overlaps(mine, other)))
}

function overlaps(a: RegistrationInfo, b: RegistrationInfo): boolean {
  const [mine, others] = [namesOf(a), namesOf(b)]
  if (mine !== undefined && others !== undefined && ![...mine].some((name) => others.has(name))) return false
  if (a.entities === undefined || b.entities === undefined) return true
  return a.entities.some((one) =>
    b.entities!.some(
      (other) =>
        one.types.some((type) => other.types.includes(type)) &&
        (one.id === undefined ? other.id === undefined || holdsId(one, other.id) : holdsId(other, one.id)),
    ),
  )
}

/** Without a temporal query only sources of current data match, which have no interval. */
function matchesTime(time: TimeInterest | undefined, registration: Registration): boolean {
  const { observationInterval, managementInterval } = registration
  if (time === undefined) return isOfThePresent(registration)
  const interval = time.timeproperty === 'observedAt' ? observationInterval : managementInterval
  return interval !== undefined && touches(time, interval)
}

/** Whether a source may hold instances of a dataset; a source without datasetId may hold all. */
export const holdsDataset = (
  { datasetId }: Registration,
  instance: { readonly datasetId?: string | undefined },
): boolean => datasetId?.includes(instance.datasetId ?? '@none') ?? true

/** Whether a source holds current data: its registration has no interval. */
export const isOfThePresent = ({ observationInterval, managementInterval }: Registration): boolean =>
  observationInterval === undefined && managementInterval === undefined

/**
 * Whether a source may hold data of a time. A source without an interval may, because it offers temporal
 * operations.
 */
export function holdsTime(
  { observationInterval, managementInterval }: Registration,
  { timerel, timeAtMs, endTimeAtMs, timeproperty }: TemporalSelection,
): boolean {
  const interval = timeproperty === 'observedAt' ? observationInterval : managementInterval
  if (interval === undefined || timerel === undefined || timeAtMs === undefined) return true
  return touches({ timerel, timeAtMs, endTimeAtMs, timeproperty }, interval)
}

function touches(
  { timerel, timeAtMs, endTimeAtMs = Number.POSITIVE_INFINITY }: TimeInterest,
  { startAt, endAt = Number.POSITIVE_INFINITY }: TimeInterval,
): boolean {
  if (timerel === 'before') return startAt < timeAtMs
  if (timerel === 'after') return endAt >= timeAtMs
  return startAt < endTimeAtMs && endAt >= timeAtMs
}

const spaces = ['location', 'observationSpace', 'operationSpace'] as const

function matchesGeo(geo: GeoQuery, registration: Registration): boolean {
  const space = spaces.find((name) => name === geo.property)
  const given = space === undefined ? registration.properties?.[geo.property] : registration[space]
  if (given === undefined) return false
  const geometry = isObject(given) && given['type'] === 'GeoProperty' ? given['value'] : given
  return compileGeometryTest(geo)(geometry)
}

/**
 * Whether a source may hold entities that satisfy a geo-query, by the space that its registration states
 * (4.3.6.1). The space contains the geometries of all its entities, so it suffices if the relation can hold
 * for some part of the space.
 */
export function mayHoldGeometry(registration: Registration, geo: GeoQuery): boolean {
  const space = spaces.find((name) => name === geo.property)
  const stated = space === undefined ? undefined : registration[space]
  if (stated === undefined || 'minDistance' in geo.relation) return true
  if ('kind' in geo.relation && geo.relation.kind === 'disjoint') return true
  const relation = 'maxDistance' in geo.relation ? geo.relation : ({ kind: 'intersects' } as const)
  const geometry = isObject(stated) && stated['type'] === 'GeoProperty' ? stated['value'] : stated
  return compileGeometryTest({ ...geo, relation })(geometry)
}

/** Converts a registration to an entity whose properties are the registration's members, for filters. */
function asEntity(registration: Registration): Entity {
  const view = { registration, statistics: { createdAt: 0, modifiedAt: 0, timesSent: 0, timesFailed: 0 } }
  const { id, type, ...members } = renderRegistration(view, {
    context: { compact: (name) => name },
    sysAttrs: false,
  })
  const property = (value: Json) =>
    isObject(value) && typeof value['type'] === 'string' ? value : { type: 'Property', value }
  const properties = Object.entries(members).map(([name, value]) => [name, property(value)])
  return { id, type, ...Object.fromEntries(properties) } as Entity
}

/** Views whose registration matches, each with its matching information only. */
export function discover(discovery: Discovery, views: Iterable<RegistrationView>): RegistrationView[] {
  const found: RegistrationView[] = []
  for (const view of views) {
    const registration = discovered(discovery, view.registration)
    if (registration !== undefined) found.push({ ...view, registration })
  }
  return found
}

/** The attributes that a query uses. */
export function attributesOf(tree: QueryTree): readonly string[] {
  if (tree.kind === 'and' || tree.kind === 'or') return tree.parts.flatMap(attributesOf)
  return [tree.path.names[0]!]
}
