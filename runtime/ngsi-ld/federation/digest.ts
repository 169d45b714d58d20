/**
 * Digests that two brokers compare to find out whether they hold the same data without exchanging it. A
 * digest is a sum of hashes, independent of order: over entities by buckets of their ids, and over
 * observations by days. Pure.
 */
import { hash } from 'node:crypto'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, listOf, own, stableJson } from '#ngsi-ld/values/json.ts'

/** The number of items, and the sum of their hashes. */
export type Digest = readonly [count: number, sum: number]

export const bucketCount = 256
const modulus = 2 ** 48

/** 48 bits of a hash, so that the sum of two is still exact. */
export const hashOf = (text: string): number => Number.parseInt(hash('sha1', text).slice(0, 12), 16)

export const plus = ([count, sum]: Digest, one: number): Digest => [count + 1, (sum + one) % modulus]

export const bucketOf = (id: string): number => hashOf(id) % bucketCount

/** Hash of an entity's id and state: the content that clients wrote, independent of order. */
export function stateHash(entity: Entity): number {
  const attributes = attributeNames(entity)
    .toSorted()
    .map((name) => [
      name,
      instancesOf(entity, name)
        .map((instance) => stableJson(instance as never))
        .toSorted(),
    ])
  const { id, type, scope = [] } = entity
  return hashOf(JSON.stringify([id, [...listOf(type)].toSorted(), [...listOf(scope)].toSorted(), attributes]))
}

/** Hash of an observation by its identity within a stream. */
export const observationHash = (at: number, instance: AttributeInstance): number =>
  hashOf(`${at} ${stableJson(own(instance, kindOf(instance).member) ?? null)}`)

export const dayOf = (ms: number): string => msToDateTime(ms).slice(0, 10)

/** Whether one instance contains everything in another one; times are compared as instants. */
export function covers(there: unknown, here: unknown, member = ''): boolean {
  if (typeof here === 'string' && typeof there === 'string' && here !== there) {
    const [a, b] = [dateTimeToMs(here), dateTimeToMs(there)]
    return member === 'observedAt' && a !== undefined && a === b
  }
  if (Array.isArray(here))
    return (
      Array.isArray(there) && here.length === there.length && here.every((one, i) => covers(there[i], one))
    )
  if (!isObject(here)) return here === there
  if (!isObject(there)) return false
  return Object.entries(here as object).every(([name, one]) =>
    covers((there as Readonly<Record<string, unknown>>)[name], one, name),
  )
}

/** Ids as one text for a digest request; ids may contain commas. */
export const toIdList = (ids: readonly string[]): string =>
  ids.map((id) => id.replace(/[%,]/g, encodeURIComponent)).join(',')

export const fromIdList = (text: string): readonly string[] =>
  text.split(',').map((id) => id.replace(/%25|%2C/g, decodeURIComponent))
