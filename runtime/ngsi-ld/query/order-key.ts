/**
 * By what an order compares one value (GS CIM 009, 4.23.2): numbers before texts, objects, arrays, truth values, times,
 * dates, DateTimes. Keys are plain JSON, so that a page can begin behind one, and small: of a text, and of what objects
 * and arrays hold, only the beginning counts.
 */
import type { Json } from '#contract/pipeline.ts'
import { isList, isObject } from '#ngsi-ld/values/json.ts'

/** What is neither a scalar nor nothing: what it is, with its parts or its text. */
type Tagged = readonly [tag: Tag, content: string | readonly OrderKey[]]
type Tag = 'object' | 'array' | 'Time' | 'Date' | 'DateTime'
export type OrderKey = number | string | boolean | null | Tagged

export type CompareTexts = (a: string, b: string) => number

/** Parts of an object or array that count, whatever their depth. */
const partsMax = 32
/** Characters of a text within them. */
const innerTextMax = 64
const typed: ReadonlySet<unknown> = new Set(['Time', 'Date', 'DateTime'])
const isTyped = (type: unknown): type is Tag => typed.has(type)

/** The key of a value; null where there is none. */
export function orderKey(value: Json | undefined): OrderKey {
  if (typeof value === 'string') return value.toWellFormed()
  return keyOf(value, { left: partsMax })
}

/** The same of a text that says a time without being typed, as members of entities and attributes do. */
export const timeKey = (text: string): OrderKey => ['DateTime', timeText(text)]

/** Without its end, so that a fraction of a second comes after none. */
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

/** Whether something that came from outside is a key. */
export function isOrderKey(key: unknown): key is OrderKey {
  if (key === null || typeof key !== 'object') return key !== undefined
  if (!Array.isArray(key) || key.length !== 2) return false
  const [tag, content] = key as readonly unknown[]
  if (typeof content === 'string') return isTyped(tag)
  return (tag === 'object' || tag === 'array') && Array.isArray(content) && content.every(isOrderKey)
}

const ranks: Readonly<Record<string, number>> = {
  ...{ number: 0, string: 1, object: 2, array: 3, boolean: 4 },
  ...{ Time: 5, Date: 6, DateTime: 7, null: 8 },
}
const kindOf = (key: OrderKey): string =>
  key === null ? 'null' : typeof key === 'object' ? key[0] : typeof key

/** Below 0 where `a` comes first; nothing comes after everything. */
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

/** Characters beyond the basic plane stand before U+E000 here; nobody minds. */
export function byUnit(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}
