/**
 * What JSON values need everywhere: telling objects apart, reading own members only (a name such as `constructor`
 * must not find what every object inherits), comparing, and a text that does not depend on member order.
 */
import type { Json } from '#contract/pipeline.ts'

export type JsonObject = { readonly [name: string]: Json }

/** `Array.isArray` for readonly lists, whose items it would call `any`. */
export const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The member of that name, if the object has one itself. */
export function own<T>(object: { readonly [name: string]: T }, name: string): T | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

/** Value or values as a list. */
export const listOf = <T>(value: T | readonly T[]): readonly T[] =>
  Array.isArray(value) ? (value as readonly T[]) : [value as T]

/** A value from its text; undefined where the text is no JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** The texts among a value or values. */
export const textsOf = (value: Json): readonly string[] =>
  listOf(value).filter((item) => typeof item === 'string')

/** Whether two JSON values are equal; the order of members does not count, that of items does. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (isList(a) || isList(b)) {
    return isList(a) && isList(b) && a.length === b.length && a.every((item, i) => sameJson(item, b[i]))
  }
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  return names.every((name) => Object.hasOwn(b, name) && sameJson(a[name], b[name]))
}

/** JSON text with members in alphabetical order at every level. */
export function stableJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(stableJson).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  const members = Object.keys(value).sort()
  return `{${members.map((name) => `${JSON.stringify(name)}:${stableJson(value[name]!)}`).join()}}`
}
