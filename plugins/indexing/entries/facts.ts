/**
 * Extracts what the index stores of an entity: scalars and links by attribute name, words, places and times.
 * Pure functions. A value NA with a rated value counts as both, in the index and in predicates.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { isSubAttribute } from '#ngsi-ld/entity/attribute-kind.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { figureOf } from '#ngsi-ld/geo/figure.ts'
import { comparedOf } from '#ngsi-ld/query/query-match.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject, listOf, own } from '#ngsi-ld/values/json.ts'
import {
  hasRatedValue,
  kinds,
  notAvailable,
  paths,
  resultTime,
  simpleResult,
  streamEnd,
  streamStart,
  wordy,
} from './entity-kinds.ts'

/** As stored in SQLite: a number, a text, a boolean as one byte, anything else as an empty blob. */
export type StoredScalar = number | string | Buffer

export interface Facts {
  /** By attribute name; sub-attribute names follow after a space. */
  readonly scalars: readonly (readonly [name: string, value: StoredScalar])[]
  readonly links: readonly (readonly [name: string, target: string])[]
  readonly words: string
  readonly places: readonly Json[]
  /** ms, if the entity has them. */
  readonly begins: number | undefined
  readonly ends: number | undefined
  readonly seen: number | undefined
}

const nothing = Buffer.alloc(0)
const truths = { true: Buffer.from([1]), false: Buffer.from([0]) } as const

/** A scalar as stored; undefined for values that cannot be compared. */
export function scalarOf(value: Json): StoredScalar | undefined {
  if (typeof value === 'number') return value
  if (typeof value === 'string') return cut(value.toWellFormed())
  return typeof value === 'boolean' ? truths[`${value}`] : undefined
}

/** Truncates a long text. */
export const cut = (text: string): string =>
  text.length <= limits.indexTextCharacters.value ? text : text.slice(0, limits.indexTextCharacters.value)

/** @param known bits of the entity's types. */
export function factsOf(entity: Entity, known: number): Facts {
  if ((known & ~kinds.observation) === 0) return observationFacts(entity)
  const scalars: (readonly [string, StoredScalar])[] = []
  const links: (readonly [string, string])[] = []
  for (const name of attributeNames(entity))
    for (const instance of instancesOf(entity, name)) collect(name, rated(instance), { scalars, links })
  return {
    scalars,
    links,
    words: wordsOf(entity),
    places: instancesOf(entity, 'location').flatMap(({ type, value }) =>
      type === 'GeoProperty' && figureOf(value) !== undefined ? [value!] : [],
    ),
    begins: timeOf(entity, streamStart),
    ends: timeOf(entity, streamEnd),
    seen: (known & kinds.observation) === 0 ? undefined : seenOf(entity),
  }
}

/** Facts of an entity that is only an observation. */
function observationFacts(entity: Entity): Facts {
  const links: (readonly [string, string])[] = []
  for (const name of attributeNames(entity))
    for (const instance of instancesOf(entity, name))
      if (instance.type === 'Relationship') collect(name, instance, { scalars: [], links })
  return {
    scalars: [],
    links,
    words: '',
    places: [],
    begins: undefined,
    ends: undefined,
    seen: seenOf(entity),
  }
}

interface Collected {
  readonly scalars: (readonly [string, StoredScalar])[]
  readonly links: (readonly [string, string])[]
}

function collect(name: string, instance: AttributeInstance, into: Collected): void {
  const content = comparedOf(instance)
  const isLink = instance.type === 'Relationship' || instance.type === 'ListRelationship'
  let found = false
  for (const item of content) {
    if (isLink) {
      if (typeof item === 'string') into.links.push([name, item])
      continue
    }
    const scalar = scalarOf(item)
    if (scalar === undefined) continue
    into.scalars.push([name, scalar])
    found = true
  }
  if (!found && !isLink) into.scalars.push([name, nothing])
  for (const [member, value] of Object.entries(instance)) {
    if (!isSubAttribute(member)) continue
    for (const part of listOf(value as Json))
      if (isObject(part) && typeof part['type'] === 'string')
        collect(`${name} ${member}`, part as unknown as AttributeInstance, into)
  }
}

/** If the value is NA and a rated value exists, the instance counts with both. */
function rated(instance: AttributeInstance): AttributeInstance {
  if (instance.value !== notAvailable) return instance
  const beside = own(instance, hasRatedValue)
  const rate = isObject(beside) ? beside['value'] : undefined
  return typeof rate === 'number' ? { ...instance, value: [notAvailable, rate] } : instance
}

/** The entity as query conditions see it. */
export function asCompared(entity: Entity): Entity {
  const changed: Record<string, AttributeInstance | readonly AttributeInstance[]> = {}
  for (const name of attributeNames(entity)) {
    const instances = instancesOf(entity, name)
    if (instances.some((instance) => rated(instance) !== instance)) changed[name] = instances.map(rated)
  }
  return Object.keys(changed).length === 0 ? entity : { ...entity, ...changed }
}

/** The texts of an entity that are searched for words. */
function wordsOf(entity: Entity): string {
  const texts = wordy
    .flatMap((name) => instancesOf(entity, name).flatMap(comparedOf))
    .filter((item) => typeof item === 'string')
  return [...new Set(texts)].join('\n').slice(0, limits.indexWordsCharacters.value).toWellFormed()
}

const timeOf = (entity: Entity, name: string): number | undefined => {
  const value = instancesOf(entity, name)[0]?.value
  const text = isObject(value) ? value['@value'] : value
  return typeof text === 'string' ? dateTimeToMs(text) : undefined
}

/** The stored part of an observation: its relationships and times. */
export function bareObservation(entity: Entity): Entity {
  const kept: Record<string, unknown> = { id: entity.id, type: entity.type }
  for (const name of [paths.belongsTo, paths.madeBySensor, resultTime])
    if (entity[name] !== undefined) kept[name] = entity[name]
  const times = instancesOf(entity, simpleResult).map(({ type, observedAt, datasetId }) => ({
    type,
    ...(observedAt !== undefined && { observedAt }),
    ...(datasetId !== undefined && { datasetId }),
  }))
  if (times.length > 0) kept[simpleResult] = times.length === 1 ? times[0] : times
  return kept as unknown as Entity
}

/** When an observation's result was observed; without observedAt, its result time. */
export function seenOf(entity: Entity): number | undefined {
  const times = instancesOf(entity, simpleResult).flatMap(({ observedAt }) =>
    observedAt === undefined ? [] : (dateTimeToMs(observedAt) ?? []),
  )
  return times.length > 0 ? Math.max(...times) : timeOf(entity, resultTime)
}
