/**
 * Sort keys for values (GS CIM 009, 4.23.2), in this order: numbers, texts, objects, arrays, booleans, times,
 * dates, DateTimes. Keys are plain JSON, so that a page can start after a key. They are small: of texts,
 * objects and arrays, only the beginning counts.
 */
import type { Json } from '#contract/pipeline.ts'
import { isList, isObject } from '#ngsi-ld/values/json.ts'

/** A non-scalar key: its type, with its parts or its text. */
type Tagged = readonly [tag: Tag, content: string | readonly OrderKey[]]
type Tag = 'object' | 'array' | 'Time' | 'Date' | 'DateTime'
export type OrderKey = number | string | boolean | null | Tagged

export type CompareTexts = (a: string, b: string) => number

/** Maximum number of parts of an object or array that count, at any depth. */
const partsMax = 32
/** Maximum characters of a text inside an object or array. */
const innerTextMax = 64
const typed: ReadonlySet<unknown> = new Set(['Time', 'Date', 'DateTime'])
const isTyped = (type: unknown): type is Tag => typed.has(type)

/** The key of a value; null if there is no value. */
export function orderKey(value: Json | undefined): OrderKey {
  if (typeof value === 'string') return value.toWellFormed()
  return keyOf(value, { left: partsMax })
}

/** The key of an untyped text that contains a time, such as a time member of an entity or attribute. */
export const timeKey = (text: string): OrderKey => ['DateTime', timeText(text)]

/** Omits the final `Z`, so that a fraction of a second sorts after no fraction. */
const timeText = (text: string): string => text.slice(0, innerTextMax).replace(',', '.').replace(/Z$/, '')

function keyOf(value: Json | undefined, room: { left: number }): OrderKey {
  room.left--
  if (typeof value === 'string') return value.slice(0, innerTextMax).toWellFormed()
  if (isList(value)) return ['array', partsOf(value, room)]
  if (!isObject(value)) return value ?? null
  const { '@type': type, '@value': text } = value
  if (isTyped(type) && typeof text === 'string') return [type, timeText(text)]
  const names = Object.keys(value).toSorted(byUnit)
  return [
    'object',
    partsOf(
      names.flatMap((name) => [name, value[name] as Json]),
      room,
    ),
  ]
}

function partsOf(values: readonly Json[], room: { left: number }): readonly OrderKey[] {
  const parts: OrderKey[] = []
  for (const value of values) {
    if (room.left <= 0) break
    parts.push(keyOf(value, room))
  }
  return parts
}

/** Whether an external value is a key. */
export function isOrderKey(key: unknown): key is OrderKey {
  if (key === null || typeof key !== 'object') return key !== undefined
  if (!Array.isArray(key) || key.length !== 2) return false
  const [tag, content] = key as readonly unknown[]
  if (typeof content === 'string') return isTyped(tag)
  return (tag === 'object' || tag === 'array') && Array.isArray(content) && content.every(isOrderKey)
}

const ranks: Readonly<Record<string, number>> = {
  number: 0,
  string: 1,
  object: 2,
  array: 3,
  boolean: 4,
  Time: 5,
  Date: 6,
  DateTime: 7,
  null: 8,
}
const kindOf = (key: OrderKey): string =>
  key === null ? 'null' : typeof key === 'object' ? key[0] : typeof key

/** Negative if `a` sorts first; null sorts after everything. */
export function compareKeys(a: OrderKey, b: OrderKey, compareTexts: CompareTexts): number {
  if (a === b) return 0
  const [kind, other] = [kindOf(a), kindOf(b)]
  if (kind !== other) return ranks[kind]! - ranks[other]!
  if (typeof a === 'string') return compareTexts(a, b as string)
  if (a === null || typeof a !== 'object') return Number(a) - Number(b)
  return compareContents(a[1], (b as Tagged)[1], compareTexts)
}

function compareContents(a: Tagged[1], b: Tagged[1], compareTexts: CompareTexts): number {
  if (typeof a === 'string' || typeof b === 'string') return byUnit(String(a), String(b))
  const shared = Math.min(a.length, b.length)
  for (let at = 0; at < shared; at++) {
    const order = compareKeys(a[at]!, b[at]!, compareTexts)
    if (order !== 0) return order
  }
  return a.length - b.length
}

/**
 * Compares by UTF-16 unit: characters beyond the basic plane sort before U+E000, which is acceptable here.
 */
export function byUnit(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}
