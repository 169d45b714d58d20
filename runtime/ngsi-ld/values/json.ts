/**
 * JSON basics: type checks, access to own members only (`constructor` must not find an inherited member),
 * comparison, and a text that does not depend on member order.
 */
import type { Json } from '#contract/pipeline.ts'

export type JsonObject = { readonly [name: string]: Json }

/** `Array.isArray` for readonly lists; the built-in one would type their items as `any`. */
export const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The object's own member with this name. */
export function own<T>(object: { readonly [name: string]: T }, name: string): T | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

/** Wraps a single value in a list; returns a list as it is. */
export const listOf = <T>(value: T | readonly T[]): readonly T[] =>
  Array.isArray(value) ? (value as readonly T[]) : [value as T]

/** Parses JSON text; undefined if the text is not JSON. */
export function parsedJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** The strings among one value or several. */
export const textsOf = (value: Json): readonly string[] =>
  listOf(value).filter((item) => typeof item === 'string')

/** Whether two JSON values are equal; the order of members is ignored, the order of items is not. */
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

/** An object with the members that are defined. */
export function present(members: { readonly [name: string]: Json | undefined }): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as JsonObject
}
