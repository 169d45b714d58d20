/**
 * What two brokers compare to see whether they hold the same, without telling each other all of it: sums of hashes, which do
 * not depend on any order, of entities by buckets of their ids, and of observations by days. Pure.
 */
import { hash } from 'node:crypto'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, listOf, own, stableJson } from '#ngsi-ld/values/json.ts'

/** How many there are, and the sum of their hashes. */
export type Digest = readonly [count: number, sum: number]

export const bucketCount = 256
const modulus = 2 ** 48

/** 48 bits of a hash, which sums of two still hold exactly. */
export const hashOf = (text: string): number => Number.parseInt(hash('sha1', text).slice(0, 12), 16)

export const plus = ([count, sum]: Digest, one: number): Digest => [count + 1, (sum + one) % modulus]

export const bucketOf = (id: string): number => hashOf(id) % bucketCount

/** Id and state of an entity: what a client wrote, in whatever order. */
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

/** An observation by its identity within a stream. */
export const observationHash = (at: number, instance: AttributeInstance): number =>
  hashOf(`${at} ${stableJson(own(instance, kindOf(instance).member) ?? null)}`)

export const dayOf = (ms: number): string => msToDateTime(ms).slice(0, 10)

/** Whether one instance holds all that another one does; times count by what they mean. */
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

/** Ids as one text, as a question for digests has them: one may hold a comma. */
export const toIdList = (ids: readonly string[]): string =>
  ids.map((id) => id.replace(/[%,]/g, encodeURIComponent)).join(',')

export const fromIdList = (text: string): readonly string[] =>
  text.split(',').map((id) => id.replace(/%25|%2C/g, decodeURIComponent))
