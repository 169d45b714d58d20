/** Compares what is to be written with what the broker has. Pure. */
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '#contract'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'

/**
 * The fragment without the attributes that the entity has, or of which it has a newer value; undefined if
 * nothing is left.
 */
export function missingIn(entity: Entity | undefined, fragment: JsonObject): JsonObject | undefined {
  if (entity === undefined) return fragment
  const left = Object.entries(fragment).filter(([name, given]) => {
    if (name === 'id' || name === 'type') return true
    const [known] = instancesOf(entity, name)
    return known === undefined || !isObject(given) || !isCovered(known as JsonObject, given)
  })
  return left.every(([name]) => name === 'id' || name === 'type') ? undefined : Object.fromEntries(left)
}

/** Whether a known instance has all members of a given one, or is newer. */
function isCovered(known: JsonObject, given: JsonObject): boolean {
  const [knownAt, givenAt] = [own(known, 'observedAt'), own(given, 'observedAt')].map(msOf)
  if (knownAt !== undefined && givenAt !== undefined && knownAt > givenAt) return true
  return Object.entries(given).every(([name, value]) =>
    name === 'observedAt' ? knownAt === givenAt : hasSame(own(known, name), value),
  )
}

/** Sub-attributes may have further members at the broker. */
function hasSame(known: Json | undefined, given: Json): boolean {
  if (!isObject(known) || !isObject(given)) return isDeepStrictEqual(known, given)
  return Object.entries(given).every(([name, value]) => hasSame(own(known, name), value))
}

const msOf = (text: Json | undefined): number | undefined =>
  typeof text === 'string' ? Date.parse(text) : undefined
