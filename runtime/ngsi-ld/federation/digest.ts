/**
 * Digests that two brokers compare to find out whether they hold the same data without exchanging it. A
 * digest is a sum of hashes, independent of order: over entities by buckets of their ids, and over
 * observations by days. Pure.
 */
import { createHash, type Hash, hash } from 'node:crypto'
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, listOf, own, stableJson } from '#ngsi-ld/values/json.ts'

/** The number of items, and the sum of their hashes. */
export type Digest = readonly [count: number, sum: number]

export const bucketCount = 256
const modulus = 2 ** 48

/** 48 bits of a hash, so that the sum of two is still exact. */
export const hashOf = (text: string): number => leading48(hash('sha1', text))
const leading48 = (hex: string): number => Number.parseInt(hex.slice(0, 12), 16)

export const plus = ([count, sum]: Digest, one: number): Digest => [count + 1, (sum + one) % modulus]

export const bucketOf = (id: string): number => hashOf(id) % bucketCount

/** Bytes of a canonical text that are hashed at once. */
const hashedBytes = 64 * 1024
/** Each UTF-16 code unit takes at most 7 bytes when it is escaped twice. */
const pieceLength = 4096
/** Text that JSON does not escape, in one byte per character. */
const isPlain = /^[ !#-[\]-~]*$/

/**
 * Creates a function that hashes an entity's id and state: the content that clients wrote, independent of
 * order. Its canonical text lists the attributes by name, each with the sorted texts of its instances. The
 * text is hashed while it is written, because the texts of many values would be much garbage.
 */
export function createStateHash(): (entity: Entity) => number {
  const bytes = Buffer.allocUnsafe(hashedBytes)
  let length = 0
  let sha1: Hash | undefined

  function makeRoom(needed: number): void {
    if (length + needed <= hashedBytes) return
    sha1 = (sha1 ?? createHash('sha1')).update(bytes.subarray(0, length))
    length = 0
  }
  function writeAscii(text: string): void {
    makeRoom(text.length)
    if (text.length > 64) length += bytes.write(text, length, 'latin1')
    else for (let i = 0; i < text.length; i++) bytes[length++] = text.charCodeAt(i)
  }
  function writeText(text: string): void {
    makeRoom(3 * text.length)
    if (3 * text.length <= hashedBytes) length += bytes.write(text, length)
    else sha1!.update(text)
  }
  /** Writes a string as JSON within a string of JSON. */
  function writeString(text: string): void {
    writeAscii('\\"')
    for (let from = 0, to = 0; from < text.length; from = to) {
      to = from + pieceLength
      // A pair of surrogates stays together, because single ones are escaped.
      if (isLowSurrogate(text.charCodeAt(to))) to++
      const piece = text.slice(from, to)
      if (isPlain.test(piece)) writeAscii(piece)
      else writeText(withinQuotes(withinQuotes(piece)))
    }
    writeAscii('\\"')
  }
  /** Writes `stableJson` of a value within a string of JSON. */
  function writeValue(value: Json): void {
    if (typeof value === 'string') writeString(value)
    else if (isList(value)) {
      value.forEach((item, i) => {
        writeAscii(i === 0 ? '[' : ',')
        writeValue(item)
      })
      writeAscii(value.length === 0 ? '[]' : ']')
    } else if (isObject(value)) {
      const names = sorted(Object.keys(value))
      names.forEach((name, i) => {
        writeAscii(i === 0 ? '{' : ',')
        writeString(name)
        writeAscii(':')
        writeValue(value[name]!)
      })
      writeAscii(names.length === 0 ? '{}' : '}')
    } else writeAscii(typeof value === 'number' && !Number.isFinite(value) ? 'null' : String(value))
  }

  return (entity) => {
    length = 0
    sha1 = undefined
    const { id, type, scope = [] } = entity
    const head = JSON.stringify([id, sorted([...listOf(type)]), sorted([...listOf(scope)])])
    writeText(`${head.slice(0, -1)},[`)
    sorted([...attributeNames(entity)]).forEach((name, i) => {
      writeText(`${i === 0 ? '' : ','}[${JSON.stringify(name)},[`)
      const instances = instancesOf(entity, name) as readonly Json[]
      if (instances.length === 1) {
        writeAscii('"')
        writeValue(instances[0]!)
        writeAscii('"')
      } else writeText(JSON.stringify(instances.map(stableJson).toSorted()).slice(1, -1))
      writeAscii(']]')
    })
    writeAscii(']]')
    const rest = bytes.subarray(0, length)
    return leading48((sha1 as Hash | undefined)?.update(rest).digest('hex') ?? hash('sha1', rest))
  }
}

/** Sorts in place. `sort` allocates 1.4 kB for each list, which may be ten times the size of an entity. */
function sorted(list: string[]): string[] {
  if (list.length > 16) return list.sort()
  for (let i = 1; i < list.length; i++) {
    for (let j = i; j > 0 && list[j - 1]! > list[j]!; j--) {
      const moved = list[j]!
      list[j] = list[j - 1]!
      list[j - 1] = moved
    }
  }
  return list
}

const withinQuotes = (text: string): string => JSON.stringify(text).slice(1, -1)
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

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
