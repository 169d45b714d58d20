/**
 * What registrations offer: whether a discovery query finds one [NGSI-LD 5.10.2, 5.12], whether two exclude each
 * other [5.9.2], and what of an entity one claims [4.3.6]. A registration without entities speaks of all of them,
 * without names of all attributes.
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

/** Which entities and attributes somebody is interested in; absent members do not restrict. */
export interface Interest {
  readonly ids?: readonly string[] | undefined
  readonly idPattern?: string | undefined
  readonly types?: TypeSelection | undefined
  /** At least one of them. */
  readonly attrs?: readonly string[] | undefined
  /** These do not count. */
  readonly omit?: readonly string[] | undefined
}

/** Which time the sources are to speak of. Milliseconds UTC. */
export interface TimeInterest {
  readonly timerel: 'before' | 'after' | 'between'
  readonly timeAtMs: number
  readonly endTimeAtMs?: number | undefined
  readonly timeproperty: string
}

export interface Discovery {
  /** Any of them. */
  readonly interests: readonly Interest[]
  readonly geo?: GeoQuery | undefined
  readonly scope?: ScopeQuery | undefined
  readonly time?: TimeInterest | undefined
  readonly csf?: QueryTree | undefined
}

/** The registration with its matching information only; undefined when it does not match. */
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

/** Whether a context source filter lets a registration through. */
export const passes = (csf: QueryTree, registration: Registration): boolean =>
  compileQuery(csf)(asEntity(registration))

/** Whether types that are registered together are of a selection. */
type TypeTest = (selection: TypeSelection, types: readonly string[]) => boolean

/** Of one that wants several types at once, a source may have an entity of which another knows the other types. */
const mayBe: TypeTest = (selection, types) => {
  if (selection.kind === 'any') return true
  const wanted = typeNamesOf(selection)
  return types.some((type) => wanted.includes(type))
}

/** Whether the information has something for the interest, or for a part of what it wants. */
export function isOfInterest(interest: Interest, info: RegistrationInfo, isOf: TypeTest = mayBe): boolean {
  const named = namesOf(info)
  if (named !== undefined && named.size > 0 && [...named].every((name) => interest.omit?.includes(name)))
    return false
  if (named !== undefined && interest.attrs !== undefined && !interest.attrs.some((name) => named.has(name)))
    return false
  return info.entities?.some((entity) => mayHave(interest, entity, isOf)) ?? true
}

/** The attributes that information names; undefined means all. */
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
 * Which attributes of an entity a registration claims: 'all', a set of names, or undefined when none. Unknown types
 * (undefined) do not restrict.
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

/** Whether two registrations may not stand beside each other: one is exclusive, the other exclusive or redirect. */
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

/** Without a temporal query sources of the present are meant, which have no interval. */
function matchesTime(time: TimeInterest | undefined, registration: Registration): boolean {
  const { observationInterval, managementInterval } = registration
  if (time === undefined) return isOfThePresent(registration)
  const interval = time.timeproperty === 'observedAt' ? observationInterval : managementInterval
  return interval !== undefined && touches(time, interval)
}

/** Whether a source may speak of instances of a dataset; one that names none may of all. */
export const holdsDataset = (
  { datasetId }: Registration,
  instance: { readonly datasetId?: string | undefined },
): boolean => datasetId?.includes(instance.datasetId ?? '@none') ?? true

/** Whether a source is one of the present: what it has is of no interval. */
export const isOfThePresent = ({ observationInterval, managementInterval }: Registration): boolean =>
  observationInterval === undefined && managementInterval === undefined

/**
 * Whether a source may have something of a time. One that says nothing about times may, since it says that it answers
 * such queries.
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
 * Whether a source may have entities that satisfy a geo-query, by the space that its registration states (4.3.6.1). The space
 * holds the geometries of all its entities, so that what a relation needs of an entity it needs of a part of the space.
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

/** A registration as an entity whose properties are its members, as a client reads them, for filters. */
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

/** The attributes that a query tells about. */
export function attributesOf(tree: QueryTree): readonly string[] {
  if (tree.kind === 'and' || tree.kind === 'or') return tree.parts.flatMap(attributesOf)
  return [tree.path.names[0]!]
}
