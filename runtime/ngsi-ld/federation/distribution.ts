/**
 * Rules of distributed operations [NGSI-LD 4.3.6, 4.5.5]: splitting a write between sources, and merging
 * copies of one entity. Exclusive and redirect sources own their claims alone; inclusive ones share them, and
 * the newest instance per datasetId wins; auxiliary ones only fill gaps.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Attribute, AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { transient } from '#ngsi-ld/entity/expiry.ts'
import type { QueryTimes } from '#ngsi-ld/query/query-match.ts'
import type { Stamps } from '#ngsi-ld/representation/representation.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, type JsonObject, listOf } from '#ngsi-ld/values/json.ts'
import { modeOf, type Registration, type RegistrationMode } from './registration.ts'
import { claimOf } from './registration-match.ts'
import { offers, type SourceOperation } from './registration-operations.ts'

/** The part of a write for one source. */
export interface WritePart {
  readonly registration: Registration
  /** Canonical names; 'all' is the unchanged request. */
  readonly attributes: 'all' | ReadonlySet<string>
  /** The instances of these attributes to send; absent means all. */
  readonly isIncluded?: IsIncluded
  /** The source is solely responsible: its failure is the failure of the request. */
  readonly isProxied: boolean
  readonly isOffered: boolean
}

export interface WriteSplit {
  readonly parts: readonly WritePart[]
  /** The part to execute locally. */
  readonly local: 'all' | 'none' | ReadonlySet<string>
  /** The instances of these attributes to write locally; absent means all. */
  readonly isIncluded?: IsIncluded
}

/** Whether an instance of an attribute is included; `@none` is the dataset of the default instance. */
type IsIncluded = (name: string, dataset: string) => boolean

export interface WriteTarget {
  readonly operation: SourceOperation
  readonly id: string
  /** Undefined types do not restrict. */
  readonly types: readonly string[] | undefined
  /** Attributes of the request; empty if it concerns the entity as a whole. */
  readonly names: readonly string[]
  /** The datasets of their instances, if known. */
  readonly datasetsOf?: (name: string) => readonly string[]
  /**
   * Whether a source can execute the write, perhaps by another operation; by default only by the operation
   * itself.
   */
  readonly isOffered?: (registration: Registration) => boolean
}

export function splitWrite(registrations: readonly Registration[], target: WriteTarget): WriteSplit {
  const { operation, id, types, names, datasetsOf } = target
  const { isOffered = (registration: Registration) => offers(registration, operation) } = target
  const parts: WritePart[] = []
  /** Instances owned by solely responsible sources, for attributes that they own only in part. */
  const owned = new Map<string, Set<string>>()
  const isFree: IsIncluded = (name, dataset) => owned.get(name)?.has(dataset) !== true
  const mayClaim = ({ datasetId }: Registration, name: string, dataset: string): boolean =>
    (datasetId?.includes(dataset) ?? true) && isFree(name, dataset)
  const holds = (registration: Registration, name: string): boolean =>
    datasetsOf?.(name).some((dataset) => mayClaim(registration, name, dataset)) ?? true
  let left: ReadonlySet<string> = new Set(names)
  let isRedirected = false
  const claimed = (mode: RegistrationMode) =>
    registrations.flatMap((registration) => {
      if (modeOf(registration) !== mode) return []
      const claim = claimOf(registration, id, types)
      if (claim === undefined) return []
      const attributes = new Set(
        [...left].filter((name) => (claim === 'all' || claim.has(name)) && holds(registration, name)),
      )
      if (names.length > 0 && attributes.size === 0) return []
      return { registration, claim, attributes, isOffered: isOffered(registration) }
    })
  const partOf = ({ registration, attributes, isOffered }: ReturnType<typeof claimed>[number]): WritePart => {
    const before = new Map([...owned].map(([name, datasets]) => [name, new Set(datasets)]))
    const isWhole = registration.datasetId === undefined && before.size === 0
    return {
      registration,
      attributes: attributes.size === names.length ? 'all' : attributes,
      isProxied: isSole(modeOf(registration)),
      isOffered,
      ...(isWhole || datasetsOf === undefined
        ? {}
        : {
            isIncluded: (name, dataset) =>
              (registration.datasetId?.includes(dataset) ?? true) && before.get(name)?.has(dataset) !== true,
          }),
    }
  }
  for (const mode of ['exclusive', 'redirect'] as const) {
    const found = claimed(mode)
    parts.push(...found.map(partOf))
    for (const { registration, claim, attributes } of found) {
      const { datasetId } = registration
      if (mode === 'redirect' && claim === 'all' && datasetId === undefined) isRedirected = true
      for (const name of attributes) {
        const all = datasetsOf?.(name) ?? []
        const known = owned.get(name) ?? new Set()
        owned.set(name, new Set([...known, ...all.filter((dataset) => datasetId?.includes(dataset) ?? true)]))
        if (all.every((dataset) => !isFree(name, dataset)))
          left = new Set([...left].filter((one) => one !== name))
      }
    }
  }
  parts.push(
    ...claimed('inclusive')
      .filter(({ isOffered }) => isOffered)
      .map(partOf),
  )
  if (isRedirected || (names.length > 0 && left.size === 0)) return { parts, local: 'none' }
  const isPartial = [...left].some((name) => (owned.get(name)?.size ?? 0) > 0)
  return {
    parts,
    local: left.size === names.length ? 'all' : left,
    ...(isPartial ? { isIncluded: isFree } : {}),
  }
}

const isSole = (mode: RegistrationMode): boolean => mode === 'exclusive' || mode === 'redirect'

/** Reduces a body to these attributes and instances; keeps members of the entity itself. */
export function bodyWith(
  body: JsonObject,
  { attributes, isIncluded }: Pick<WritePart, 'attributes' | 'isIncluded'>,
  expand: (term: string) => string,
): JsonObject {
  if (attributes === 'all' && isIncluded === undefined) return body
  const members = Object.entries(body).flatMap(([term, value]): [string, Json][] => {
    if (entityMembers.has(term)) return [[term, value]]
    const name = expand(term)
    if (attributes !== 'all' && !attributes.has(name)) return []
    if (isIncluded === undefined) return [[term, value]]
    if (!isList(value)) return isIncluded(name, datasetOf(value)) ? [[term, value]] : []
    const meant = value.filter((one) => isIncluded(name, datasetOf(one)))
    return meant.length === 0 && value.length > 0 ? [] : [[term, meant]]
  })
  return Object.fromEntries(members)
}

const datasetOf = (value: Json): string =>
  isObject(value) && typeof value['datasetId'] === 'string' ? value['datasetId'] : '@none'

/** The datasets of the instances of each attribute of a body. */
export function datasetsIn(
  body: JsonObject,
  expand: (term: string) => string,
): (name: string) => readonly string[] {
  const found = new Map(
    Object.entries(body).map(([term, value]) => [expand(term), [...new Set(listOf(value).map(datasetOf))]]),
  )
  return (name) => found.get(name) ?? ['@none']
}

/** Canonical names of the attributes of a body. */
export function namesIn(body: JsonObject, expand: (term: string) => string): string[] {
  return Object.keys(body)
    .filter((name) => !entityMembers.has(name))
    .map((name) => expand(name))
}

const entityMembers: ReadonlySet<string> = new Set([
  'id',
  '@id',
  'type',
  '@type',
  'scope',
  '@context',
  'createdAt',
  'modifiedAt',
  'deletedAt',
  'expiresAt',
])

/** A copy of an entity, and the extent of its source's claim. */
export interface EntityCopy {
  readonly mode: RegistrationMode | 'local'
  readonly claim: 'all' | ReadonlySet<string>
  readonly entity: Entity
  readonly times: QueryTimes
}

interface Held {
  readonly instance: AttributeInstance
  readonly times: Stamps | undefined
}

const isSoleCopy = ({ mode }: EntityCopy): boolean => mode !== 'local' && isSole(mode)

/**
 * Merges copies of one entity that have not expired: the types and scopes of all [4.16, 4.18], and each
 * attribute by the rules of 4.5.5; among equals the first wins. `transient` determines the expiry.
 */
export function mergeCopies(given: readonly EntityCopy[]): { entity: Entity; times: QueryTimes } {
  const { versions: copies, expiresAt } = transient(given)
  const main = copies.filter(({ mode }) => mode !== 'auxiliary')
  const auxiliary = copies.filter(({ mode }) => mode === 'auxiliary')
  const names = new Set(copies.flatMap(({ entity }) => attributeNames(entity)))
  const attributes: Record<string, Attribute> = {}
  const stamps: Record<string, Stamps> = {}
  for (const name of names) {
    const held = instancesHeld(main, auxiliary, name)
    if (held.size === 0) continue
    const instances = [...held.values()].map(({ instance }) => instance)
    attributes[name] = instances.length === 1 ? instances[0]! : instances
    for (const [dataset, { times }] of held)
      if (times !== undefined) stamps[dataset === '' ? name : `${name} ${dataset}`] = times
  }
  const known = main.length > 0 ? main : copies
  const types = [...new Set(known.flatMap(({ entity }) => listOf<string>(entity.type)))]
  const scopes = [...new Set(known.flatMap(({ entity }) => listOf<string>(entity.scope ?? [])))]
  const created = copies.map(({ times }) => times.created).filter((ms) => ms > 0)
  return {
    entity: {
      id: copies[0]!.entity.id,
      type: types.length === 1 ? types[0]! : types,
      ...(scopes.length === 0 ? {} : { scope: scopes.length === 1 ? scopes[0]! : scopes }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
      ...attributes,
    },
    times: {
      created: created.length === 0 ? 0 : Math.min(...created),
      modified: Math.max(...copies.map(({ times }) => times.modified)),
      attributes: stamps,
    },
  }
}

/** The instance that wins for each dataset of an attribute. */
function instancesHeld(
  main: readonly EntityCopy[],
  auxiliary: readonly EntityCopy[],
  name: string,
): ReadonlyMap<string, Held> {
  const sole = main.filter((copy) => isSoleCopy(copy) && (copy.claim === 'all' || copy.claim.has(name)))
  const held = new Map<string, Held>()
  for (const copy of sole.length > 0 ? sole : main) gatherInstances(held, copy, name, isNewer)
  for (const copy of auxiliary) gatherInstances(held, copy, name, () => false)
  return held
}

function gatherInstances(
  held: Map<string, Held>,
  { entity, times }: EntityCopy,
  name: string,
  wins: (challenger: Held, holder: Held) => boolean,
): void {
  for (const instance of instancesOf(entity, name)) {
    const dataset = instance.datasetId ?? ''
    const challenger = {
      instance,
      times: times.attributes[dataset === '' ? name : `${name} ${dataset}`],
    }
    const holder = held.get(dataset)
    if (holder === undefined || wins(challenger, holder)) held.set(dataset, challenger)
  }
}

/**
 * Compares by observedAt if both have one, then by modifiedAt; an instance with observedAt is newer than one
 * without.
 */
function isNewer(a: Held, b: Held): boolean {
  const [mine, other] = [a, b].map(({ instance: { observedAt } }) =>
    observedAt === undefined ? undefined : dateTimeToMs(observedAt),
  )
  if (mine !== other) return (mine ?? Number.NEGATIVE_INFINITY) > (other ?? Number.NEGATIVE_INFINITY)
  return (a.times?.[1] ?? 0) > (b.times?.[1] ?? 0)
}

/** createdAt and modifiedAt of an entity in another broker's response. */
export function timesIn(json: JsonObject, context: Pick<Context, 'expand'>): QueryTimes {
  const attributes: Record<string, readonly [number, number]> = {}
  for (const [member, value] of Object.entries(json)) {
    if (entityMembers.has(member)) continue
    for (const instance of listOf<Json>(value)) {
      if (!isObject(instance) || instance['modifiedAt'] === undefined) continue
      const dataset = typeof instance['datasetId'] === 'string' ? instance['datasetId'] : ''
      const name = context.expand(member)
      attributes[dataset === '' ? name : `${name} ${dataset}`] = [
        ms(instance['createdAt']),
        ms(instance['modifiedAt']),
      ]
    }
  }
  return { created: ms(json['createdAt']), modified: ms(json['modifiedAt']), attributes }
}

const ms = (value: Json | undefined): number => (typeof value === 'string' ? (dateTimeToMs(value) ?? 0) : 0)
