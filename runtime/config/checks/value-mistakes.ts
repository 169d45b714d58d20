/**
 * Translates what valibot rejects into mistakes with path, expected value and nearest name. It reports every
 * unknown name, where valibot reports only the first one of each group.
 */
import type * as v from 'valibot'
import { type Keys, type Mistake, mistakeAt, pathText } from '#config/schema/mistakes.ts'
import { nearest } from '#config/schema/nearest.ts'
import { allSettings, expectedAt, namesAt } from '#config/schema/settings-tree.ts'

/** A place that the schema rejects: a wrong value, or a name that the schema does not contain. */
export interface WrongPlace {
  readonly keys: Keys
  readonly expected: string
  readonly isUnknown: boolean
  readonly nearest?: string | undefined
}

/**
 * The rejected places; each occurs once, however many rules its value violates.
 *
 * @param schema the violated schema, if it is not that of the settings.
 */
export function wrongPlaces(issues: readonly v.BaseIssue<unknown>[], schema?: v.GenericSchema): WrongPlace[] {
  const places = issues.flatMap((issue) => placesOf(issue, schema))
  return [...new Map(places.map((place) => [pathText(place.keys), place])).values()]
}

export function valueMistakes(
  places: readonly WrongPlace[],
  raw: { readonly value: unknown; readonly sourceOf: (keys: Keys) => string },
): Mistake[] {
  return places.map(({ keys, expected, nearest }) =>
    mistakeAt(raw.value, keys, { expected, nearest, source: raw.sourceOf(keys) }),
  )
}

function placesOf(
  { path: given, type, expected }: v.BaseIssue<unknown>,
  schema: v.GenericSchema | undefined,
): WrongPlace[] {
  const path: readonly v.IssuePathItem[] = given ?? []
  const keys = path.map(({ key }) => key as string | number)
  // A list where a group is expected: its items count as names.
  const list = path.findIndex((item) => item.type === 'object' && Array.isArray(item.input))
  if (list < 0 && type === 'strict_object' && expected === 'never') {
    const group = keys.slice(0, -1)
    const known = namesAt(group, schema)
    return Object.keys(path.at(-1)!.input as object)
      .filter((name) => !known.includes(name))
      .map((name) => unknownName([...group, name], known, schema === undefined))
  }
  const at = expectedAt(list < 0 ? keys : keys.slice(0, list), schema)
  return [{ keys: keys.slice(0, at.depth), expected: at.expected, isUnknown: false }]
}

function unknownName(keys: Keys, known: readonly string[], isSetting: boolean): WrongPlace {
  const name = String(keys.at(-1))
  const sibling = nearest(name, known)
  const farther = isSetting ? elsewhere(name) : undefined
  return {
    keys,
    expected: `one of ${known.join(', ')}`,
    isUnknown: true,
    nearest: sibling === undefined ? farther : pathText([...keys.slice(0, -1), sibling]),
  }
}

/** The path of a setting elsewhere whose last name, or whole path, is near. */
function elsewhere(name: string): string | undefined {
  const paths = allSettings().map(({ path }) => path)
  const lastName = (path: string): string => path.slice(path.lastIndexOf('.') + 1)
  const near = nearest(name, paths.map(lastName))
  return near === undefined ? nearest(name, paths) : paths.find((path) => lastName(path) === near)
}
