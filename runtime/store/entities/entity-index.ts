/**
 * The index rows of an entity: its types, its scopes, its attribute names, the scalars of their values, the
 * places of its GeoProperties. Pure: the rows follow from the document alone, so old rows can be deleted
 * exactly. Sub-attributes and members within JSON values are not indexed.
 */
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { boundingBoxOf } from '#ngsi-ld/query/geo-query.ts'
import { comparedOf, contentOf } from '#ngsi-ld/query/query-match.ts'
import { isList, isObject, listOf } from '#ngsi-ld/values/json.ts'
import { cellOf } from './place-cell.ts'

/**
 * The column `kind` of a scalar. A range never contains values of different kinds. A point on the globe is
 * stored as the number of its cell; every other geometry is a box in the R-tree. `several` marks an attribute
 * with more than one value or instance, because two comparisons may hold for different ones of them. `whole`
 * marks an attribute with an array or object, which is ordered as a whole.
 */
export const scalarKinds = { number: 1, text: 2, boolean: 3, cell: 4, several: 5, whole: 6 } as const

/** Scopes are indexed as texts of an attribute with this name, which no real attribute can have. */
export const scopeName = '@scope'

/** Number of characters of a text that the index stores. */
export const indexedTextMax = 256

export type ScalarRow = readonly [name: string, kind: number, value: number | string]

export interface PlaceRow {
  readonly name: string
  readonly box: { readonly x0: number; readonly x1: number; readonly y0: number; readonly y1: number }
  /** Exact position of a point outside the globe. */
  readonly lon?: number
  readonly lat?: number
}

export interface IndexRows {
  readonly types: readonly string[]
  readonly attributes: readonly string[]
  readonly scalars: readonly ScalarRow[]
  readonly places: readonly PlaceRow[]
}

/** All index rows of an entity, without repetition. */
export const indexRows = (entity: Entity): IndexRows => rowsOf(entity, attributeNames(entity))

/**
 * The rows to add and to remove when an entity changes. Places are removed per attribute: when one of them
 * changed, `remove` holds all places of that attribute and `add` all that remain.
 */
export function diffIndexRows(
  before: Entity,
  after: Entity,
): { readonly add: IndexRows; readonly remove: IndexRows } {
  const names = new Set([...attributeNames(before), ...attributeNames(after)])
  // An identical attribute object has identical rows, and most writes change one of many attributes.
  const touched = [...names].filter((name) => before[name] !== after[name])
  const [old, next] = [rowsOf(before, touched), rowsOf(after, touched)]
  return { add: difference(next, old), remove: difference(old, next) }
}

function rowsOf(entity: Entity, names: readonly string[]): IndexRows {
  const present = names.filter((name) => entity[name] !== undefined)
  return {
    types: [...new Set(listOf(entity.type))],
    attributes: present,
    scalars: [...present.flatMap((name) => scalarsOf(entity, name)), ...scopesOf(entity)],
    places: present.flatMap((name) => placesOf(entity, name)),
  }
}

function difference(rows: IndexRows, others: IndexRows): IndexRows {
  const known = new Set(others.scalars.map(keyOf))
  const places = (of: IndexRows, name: string): string =>
    JSON.stringify(of.places.filter((place) => place.name === name))
  return {
    types: rows.types.filter((type) => !others.types.includes(type)),
    attributes: rows.attributes.filter((name) => !others.attributes.includes(name)),
    scalars: rows.scalars.filter((row) => !known.has(keyOf(row))),
    places: rows.places.filter(({ name }) => places(rows, name) !== places(others, name)),
  }
}

function keyOf([name, kind, value]: ScalarRow): string {
  return `${kind} ${name} ${value}`
}

function scalarsOf(entity: Entity, name: string): readonly ScalarRow[] {
  const rows = new Map<string, ScalarRow>()
  const instances = instancesOf(entity, name)
  let hasWhole = false
  for (const instance of instances) {
    const cell = instance.type === 'GeoProperty' ? pointCell(instance.value) : undefined
    if (cell !== undefined) rows.set(`cell ${cell}`, [name, scalarKinds.cell, cell])
    else if (isWhole(instance)) hasWhole = true
    for (const item of comparedOf(instance)) {
      const row = scalarOf(name, item)
      if (row !== undefined) rows.set(keyOf(row), row)
    }
  }
  if (rows.size > 1 || instances.length > 1) rows.set('several', [name, scalarKinds.several, 1])
  if (hasWhole) rows.set('whole', [name, scalarKinds.whole, 1])
  return [...rows.values()]
}

function isWhole(instance: AttributeInstance): boolean {
  const content = instance.type === 'LanguageProperty' ? undefined : contentOf(instance)
  return isObject(content) || isList(content)
}

function scopesOf({ scope }: Entity): readonly ScalarRow[] {
  if (scope === undefined) return []
  return [...new Set(listOf(scope).map(indexedText))].map((text) => [scopeName, scalarKinds.text, text])
}

function scalarOf(name: string, item: Json): ScalarRow | undefined {
  // SQLite distinguishes -0 from 0, but comparisons do not; so only 0 is stored.
  if (typeof item === 'number') return [name, scalarKinds.number, item === 0 ? 0 : item]
  if (typeof item === 'string') return [name, scalarKinds.text, indexedText(item)]
  if (typeof item === 'boolean') return [name, scalarKinds.boolean, item ? 1 : 0]
  return undefined
}

/** The indexed form of a text: well-formed Unicode, cut at the limit without splitting a character. */
export function indexedText(text: string): string {
  return cut(text, indexedTextMax)
}

/**
 * A prefix that the indexed form of every text with this prefix has: the cut may be one short of the limit.
 */
export function indexedPrefix(text: string): string {
  return cut(text, indexedTextMax - 1)
}

function cut(text: string, length: number): string {
  if (text.length <= length) return text.toWellFormed()
  const last = text.charCodeAt(length - 1)
  const isHalf = last >= 0xd800 && last < 0xdc00
  return text.slice(0, isHalf ? length - 1 : length).toWellFormed()
}

function placesOf(entity: Entity, name: string): readonly PlaceRow[] {
  return instancesOf(entity, name).flatMap(({ type, value }) => {
    const box = type === 'GeoProperty' && pointCell(value) === undefined ? boundingBoxOf(value) : undefined
    if (box === undefined) return []
    const [x0, y0, x1, y1] = box
    return [{ name, box: { x0, x1, y0, y1 }, ...(isPoint(value) ? { lon: x0, lat: y0 } : {}) }]
  })
}

function pointCell(value: Json | undefined): number | undefined {
  return isPoint(value) ? cellOf(value.coordinates[0], value.coordinates[1]) : undefined
}

function isPoint(
  value: Json | undefined,
): value is { type: 'Point'; coordinates: readonly [number, number] } {
  return isObject(value) && value['type'] === 'Point'
}
