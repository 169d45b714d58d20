/**
 * Converts entities to rows and back without loss: one row per attribute instance, or one row for an entity
 * without attributes. Values are JSON, except texts that cannot be mistaken for JSON. Members without a
 * column of their own are JSON in the column `more`.
 */
import type { Json } from '#contract'
import { isObject, type JsonObject, listOf, parsedJson } from '#ngsi-ld/values/json.ts'

/** `expiresAt` is that of the entity; that of an attribute instance is in `more`. */
export const entityColumns = [
  'id',
  'type',
  'scope',
  'expiresAt',
  'attribute',
  'kind',
  'value',
  'observedAt',
  'unitCode',
  'datasetId',
  'more',
] as const

type Column = (typeof entityColumns)[number]

/** The value member of each kind; Property and GeoProperty use `value`. */
const valueMembers: Readonly<Record<string, string>> = {
  Relationship: 'object',
  LanguageProperty: 'languageMap',
  VocabProperty: 'vocab',
  JsonProperty: 'json',
  ListProperty: 'valueList',
  ListRelationship: 'objectList',
}
const valueMemberOf = (kind: string): string => valueMembers[kind] ?? 'value'

/** The rows of an entity in normalized form. */
export function toRows(entity: JsonObject): readonly (readonly string[])[] {
  const { id, type, scope, expiresAt, '@context': _, ...others } = entity
  // In a history, scopes are instances like those of attributes.
  const isReified = scope !== undefined && listOf(scope).some(isObject)
  const attributes = isReified ? { ...others, scope } : others
  const start = [id as string, namesText(type), isReified ? '' : namesText(scope), namesText(expiresAt)]
  const rows = Object.entries(attributes).flatMap(([name, attribute]) =>
    listOf(attribute).map((instance) => [...start, name, ...cellsOf(instance as JsonObject)]),
  )
  return rows.length > 0 ? rows : [[...start, ...Array<string>(entityColumns.length - start.length).fill('')]]
}

function cellsOf(instance: JsonObject): readonly string[] {
  const kind = instance['type'] as string
  const member = valueMemberOf(kind)
  const { type: _, [member]: value, observedAt, unitCode, datasetId, ...more } = instance
  return [
    kind,
    valueText(value),
    ...[observedAt, unitCode, datasetId].map((text) => (typeof text === 'string' ? text : '')),
    Object.keys(more).length === 0 ? '' : JSON.stringify(more),
  ]
}

const namesText = (names: Json | undefined): string =>
  names === undefined ? '' : listOf(names as string | readonly string[]).join(' ')

function valueText(value: Json | undefined): string {
  if (value === undefined) return ''
  if (typeof value !== 'string' || value === '') return JSON.stringify(value)
  return parsedJson(value) === undefined ? value : JSON.stringify(value)
}

export type RowReader = ReturnType<typeof createRowReader>

/**
 * Creates a reader of rows with the columns of a header, which may be a subset.
 * @param header the caller rejects unknown columns, see `unknownColumns`.
 */
export function createRowReader(header: readonly string[]) {
  const at = new Map(header.map((name, index) => [name.trim(), index]))
  const cell = (row: readonly string[], name: Column): string => row[at.get(name) ?? -1] ?? ''
  let current: Record<string, Json> | undefined
  const take = (): readonly JsonObject[] => {
    const done = current === undefined ? [] : [current]
    current = undefined
    return done
  }
  return Object.freeze({
    /** Returns the entity that a further row completes; rows of an entity are consecutive. */
    read(row: readonly string[]): readonly JsonObject[] {
      const id = cell(row, 'id')
      const done = current !== undefined && current['id'] !== id ? take() : []
      current ??= {
        id,
        type: named(cell(row, 'type')),
        ...(cell(row, 'scope') === '' ? {} : { scope: named(cell(row, 'scope')) }),
        ...(cell(row, 'expiresAt') === '' ? {} : { expiresAt: cell(row, 'expiresAt') }),
      }
      const name = cell(row, 'attribute')
      if (name === '') return done
      const before = current[name]
      const instance = instanceOf((column) => cell(row, column))
      current[name] = before === undefined ? instance : [...(listOf(before) as readonly Json[]), instance]
      return done
    },
    end: take,
  })
}

/** Names in a header that are not columns. */
export const unknownColumns = (header: readonly string[]): readonly string[] =>
  header.map((name) => name.trim()).filter((name) => !(entityColumns as readonly string[]).includes(name))

function named(text: string): Json {
  const names = text.split(' ').filter((name) => name !== '')
  return names.length === 1 ? names[0]! : names
}

function instanceOf(cell: (column: Column) => string): JsonObject {
  const kind = cell('kind') || 'Property'
  const value = cell('value')
  const more = parsedJson(cell('more'))
  const texts = (['observedAt', 'unitCode', 'datasetId'] as const).flatMap((name) =>
    cell(name) === '' ? [] : [[name, cell(name)] as const],
  )
  return {
    type: kind,
    ...(value === '' ? {} : { [valueMemberOf(kind)]: parsedJson(value) ?? value }),
    ...Object.fromEntries(texts),
    ...(isObject(more) ? more : {}),
  }
}
