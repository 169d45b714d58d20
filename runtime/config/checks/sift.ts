/**
 * Compares a tree of settings with the schema by name: unknown names become mistakes, sections of components
 * that are not built are reported, and empty values count as absent. Values are checked afterwards.
 */

import type * as v from 'valibot'
import { limits } from '#base/limits/limits.ts'
import { type Keys, type Mistake, pathText, shown } from '#config/schema/mistakes.ts'
import { nearest } from '#config/schema/nearest.ts'
import { settingsSchema } from '#config/schema/settings-schema.ts'
import { allSettings, expectedAt, placeOf, type Setting } from '#config/schema/settings-tree.ts'
import type { Absent } from './environment.ts'
import { type AbsentSection, absentSections } from './foreign-names.ts'

export interface Sifted {
  /** A copy with known names only. */
  readonly value: unknown
  readonly mistakes: readonly Mistake[]
  readonly absent: readonly Absent[]
}

type Report = { readonly source: string; readonly mistakes: Mistake[]; readonly absent: Absent[] }

/** Names with a special meaning in JavaScript. */
const forbiddenNames = ['__proto__', 'constructor', 'prototype']

/** Checks the names of all settings, or of the value of one `setting`. */
export function sift(value: unknown, source: string, setting?: Setting): Sifted {
  const report: Report = { source, mistakes: [], absent: [] }
  const keys = setting?.path.split('.') ?? []
  if (deeperThan(limits.settingsDepthMax.value, value)) {
    const expected = `at most ${limits.settingsDepthMax.value} levels`
    report.mistakes.push({ path: pathText(keys), expected, source })
    return { value: keys.length === 0 ? {} : undefined, ...report }
  }
  return { value: siftAt(value ?? {}, setting?.schema ?? settingsSchema, keys, report), ...report }
}

export function isGroup(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function siftAt(value: unknown, schema: v.GenericSchema, keys: Keys, report: Report): unknown {
  const place = placeOf(schema)
  if (place.kind === 'list' && Array.isArray(value)) {
    return value.map((item, i) => siftAt(item, place.each, [...keys, i], report))
  }
  if (place.kind !== 'group' && place.kind !== 'map') return value
  if (Array.isArray(value)) {
    const { expected } = expectedAt(keys)
    report.mistakes.push({ path: pathText(keys), value: shown(value, keys), expected, source: report.source })
    return {}
  }
  if (!isGroup(value)) return value
  const kept: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    const here = [...keys, name]
    const next =
      place.kind === 'map' ? place.each : Object.hasOwn(place.entries, name) ? place.entries[name] : undefined
    if (next !== undefined && !forbiddenNames.includes(name)) {
      if (member !== null) kept[name] = siftAt(member, next, here, report)
    } else if (keys.length === 0 && Object.hasOwn(absentSections, name)) {
      report.absent.push({ setting: name, part: absentSections[name as AbsentSection] })
    } else report.mistakes.push(unknownName(here, member, place, report.source))
  }
  return kept
}

function unknownName(
  keys: Keys,
  member: unknown,
  place: ReturnType<typeof placeOf>,
  source: string,
): Mistake {
  const mistake = { path: pathText(keys), value: shown(member, keys), source }
  if (place.kind !== 'group') return { ...mistake, expected: 'another name' }
  const parent = keys.slice(0, -1)
  const neighbours = Object.keys(place.entries)
  const neighbour = nearest(String(keys.at(-1)), neighbours)
  const meant = neighbour === undefined ? elsewhere(String(keys.at(-1))) : pathText([...parent, neighbour])
  return { ...mistake, expected: `one of ${neighbours.join(', ')}`, nearest: meant }
}

/** The path of a setting elsewhere whose last name, or whole path, is near. */
function elsewhere(name: string): string | undefined {
  const paths = allSettings().map(({ path }) => path)
  const lastName = (path: string): string => path.slice(path.lastIndexOf('.') + 1)
  const near = nearest(name, paths.map(lastName))
  return near === undefined ? nearest(name, paths) : paths.find((path) => lastName(path) === near)
}

function deeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => deeperThan(levels - 1, member))
}
