/**
 * The schema as a tree: the keys of each place, and all settings. It derives everything
 * from the schema, so that a setting added there also appears in the environment, in messages and in the
 * reference page.
 */
import * as v from 'valibot'
import type { Keys } from './mistakes.ts'
import { settingsSchema } from './settings-schema.ts'
import { fileNameWords } from './value-kinds.ts'

/** A setting. In its path, `*` stands for a name chosen by the operator and `[]` for each item of a list. */
export interface Setting {
  readonly path: string
  /** Description of the expected value. */
  readonly expected: string
  /** Undefined if the absence of the setting has a meaning of its own. */
  readonly byDefault: unknown
  /** The default in words, if it depends on other settings. */
  readonly defaultText: string | undefined
  readonly schema: v.GenericSchema
}

/** A place of the tree: known keys, keys chosen by the operator, list items, or a value. */
export type SettingPlace =
  | { readonly kind: 'group'; readonly entries: Readonly<Record<string, v.GenericSchema>> }
  | { readonly kind: 'map'; readonly each: v.GenericSchema }
  | { readonly kind: 'list'; readonly each: v.GenericSchema }
  | { readonly kind: 'value' }

interface Inner {
  type: string
  entries?: Record<string, v.GenericSchema>
  value?: v.GenericSchema
  item?: v.GenericSchema
  wrapped?: v.GenericSchema
}

export function placeOf(schema: v.GenericSchema): SettingPlace {
  const inner = unwrapped(schema) as unknown as Inner
  if (inner.type === 'strict_object') return { kind: 'group', entries: inner.entries! }
  if (inner.type === 'record') return { kind: 'map', each: inner.value! }
  if (inner.type === 'array') return { kind: 'list', each: inner.item! }
  return { kind: 'value' }
}

/**
 * All settings in schema order. A list of groups is a setting itself, followed by the settings of its items.
 */
export function allSettings(): readonly Setting[] {
  return settingsUnder(settingsSchema, '')
}

/** Settings with a fixed path, which an environment variable or flag can set. */
export function fixedSettings(): readonly Setting[] {
  return allSettings().filter(({ path }) => !/[*[]/.test(path))
}

/**
 * Description of the value expected at a path. Within a value that is checked as a whole, such as a location,
 * it is that of the whole value; `depth` is the number of keys that lead to it.
 */
export function expectedAt(
  keys: Keys,
  root: v.GenericSchema = settingsSchema,
): { expected: string; depth: number } {
  let schema: v.GenericSchema | undefined = root
  let found = { expected: expectedOf(schema), depth: 0 }
  for (const [i, key] of keys.entries()) {
    schema = memberOf(schema, key)
    if (schema === undefined) break
    const expected = expectedOf(schema)
    if (expected !== '') found = { expected, depth: i + 1 }
  }
  return found
}

/** The names in the group at a path. */
export function namesAt(keys: Keys, root: v.GenericSchema = settingsSchema): readonly string[] {
  const schema = keys.reduce<v.GenericSchema | undefined>((group, key) => group && memberOf(group, key), root)
  const place = schema && placeOf(schema)
  return place?.kind === 'group' ? Object.keys(place.entries) : []
}

function memberOf(schema: v.GenericSchema, key: string | number): v.GenericSchema | undefined {
  const place = placeOf(schema)
  if (place.kind === 'value') return undefined
  return place.kind === 'group' ? place.entries[key] : place.each
}

function expectedOf(schema: v.GenericSchema): string {
  const { expected } = v.getMetadata(unwrapped(schema))
  return typeof expected === 'string' ? expected : ''
}

/** Whether the value is the name of a file or folder. */
export const isFileName = (schema: v.GenericSchema): boolean => expectedOf(schema) === fileNameWords

/** The schema without the wrapper that makes it optional. */
function unwrapped(schema: v.GenericSchema): v.GenericSchema {
  return (schema as unknown as Inner).wrapped ?? schema
}

function settingsUnder(schema: v.GenericSchema, path: string): Setting[] {
  const place = placeOf(schema)
  if (place.kind === 'group') {
    return Object.entries(place.entries).flatMap(([name, entry]) =>
      settingsUnder(entry, path === '' ? name : `${path}.${name}`),
    )
  }
  const own = [describe(schema, path)]
  if (place.kind === 'map') return [...own, ...settingsUnder(place.each, `${path}.*`)]
  if (place.kind === 'list' && placeOf(place.each).kind === 'group') {
    return [...own, ...settingsUnder(place.each, `${path}[]`)]
  }
  return own
}

function describe(schema: v.GenericSchema, path: string): Setting {
  const inner = unwrapped(schema)
  const { defaultText } = v.getMetadata(inner)
  return {
    path,
    expected: expectedOf(schema),
    byDefault:
      schema.type === 'optional'
        ? v.getDefault(schema as v.OptionalSchema<v.GenericSchema, unknown>)
        : undefined,
    defaultText: defaultText as string | undefined,
    schema: inner,
  }
}
