/**
 * Reads numbers, vectors and matrices from the JSON of a model. Every error names the path of the mistake,
 * such as `means[1][0]`.
 */
import type { Json } from '#contract'
import { isList, isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** A JSON value and its path. */
export interface Placed {
  readonly json: Json | undefined
  readonly path: string
}

/** Lengths that a list may have. */
export interface Lengths {
  readonly least?: number
  readonly most: number
  /** Name of the items, in the plural. */
  readonly what: string
}

/** Larger squares of distances would overflow. */
const magnitudeMax = 1e100

export function objectIn({ json, path }: Placed, members: readonly string[]): JsonObject {
  if (!isObject(json)) throw badRequestData(`must be an object${shown(json)}`, path)
  const unknown = Object.keys(json).find((name) => !members.includes(name))
  if (unknown === undefined) return json
  throw badRequestData(`is not known here; members are ${members.join(', ')}`, memberPath(path, unknown))
}

export const memberPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

export function itemsIn({ json, path }: Placed, { least = 1, most, what }: Lengths): readonly Placed[] {
  if (!isList(json)) throw badRequestData(`must be a list of ${what}${shown(json)}`, path)
  if (json.length < least || json.length > most) {
    const expected = least === most ? `${most}` : `${least} to ${most}`
    throw badRequestData(`must have ${expected} ${what}, got ${json.length}`, path)
  }
  return json.map((item, i) => ({ json: item, path: `${path}[${i}]` }))
}

export function numberIn({ json, path }: Placed): number {
  if (typeof json === 'number' && Math.abs(json) <= magnitudeMax) return json
  throw badRequestData(`must be a number within ±${magnitudeMax}${shown(json)}`, path)
}

export function positiveIn(placed: Placed): number {
  const value = numberIn(placed)
  if (value > 0) return value
  throw badRequestData(`must be above 0, got ${value}`, placed.path)
}

export function countIn({ json, path }: Placed, most: number): number {
  if (typeof json === 'number' && Number.isInteger(json) && json >= 1 && json <= most) return json
  throw badRequestData(`must be a whole number from 1 to ${most}${shown(json)}`, path)
}

export const vectorIn = (placed: Placed, lengths: Lengths): Float64Array =>
  Float64Array.from(itemsIn(placed, lengths), numberIn)

/** Rows of equal length. */
export function matrixIn(placed: Placed, rows: Lengths, columns: Lengths): readonly Float64Array[] {
  const [first, ...others] = itemsIn(placed, rows)
  const top = vectorIn(first!, columns)
  const same = { least: top.length, most: top.length, what: columns.what }
  return [top, ...others.map((row) => vectorIn(row, same))]
}

const shown = (json: Json | undefined): string =>
  json === undefined ? '; it is missing' : `, got ${JSON.stringify(json).slice(0, 60)}`
