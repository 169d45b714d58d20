/**
 * Merges file, environment and flags, in this order of increasing precedence, into one frozen value, or
 * returns a list of all mistakes. A single mistake means no settings: nothing is guessed or silently ignored.
 */

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import * as v from 'valibot'
import { isLoopbackListener } from '#base/load/loopback.ts'
import { type BridgeChecks, bridgeMistakes } from '#config/checks/bridge-mistakes.ts'
import {
  type Absent,
  type Environment,
  fromText,
  type GivenSetting,
  readEnvironment,
} from '#config/checks/environment.ts'
import { absentSections } from '#config/checks/foreign-names.ts'
import { type PatternCheck, patternMistakes } from '#config/checks/pattern-mistakes.ts'
import { relationMistakes, relationWarnings } from '#config/checks/relations.ts'
import { type UplinkCheck, uplinkMistakes } from '#config/checks/uplink-mistakes.ts'
import { valueMistakes, type WrongPlace, wrongPlaces } from '#config/checks/value-mistakes.ts'
import type { Keys, Mistake } from '#config/schema/mistakes.ts'
import { nearest } from '#config/schema/nearest.ts'
import { type Settings, settingsSchema } from '#config/schema/settings-schema.ts'
import { fixedSettings, isFileName, placeOf } from '#config/schema/settings-tree.ts'
import { settingsCopy } from './settings-copy.ts'
import { readSettingsFile } from './settings-file.ts'

/** A setting given on the command line. */
export interface SettingFlag {
  /** Path of the setting, such as `http.port`. */
  readonly path: string
  readonly text: string
  /** The text of the flag, for messages. */
  readonly source: string
}

export interface SettingsSources {
  /**
   * The settings file. Default: SELVEDGE_CONFIG, else `selvedge.yaml` or `selvedge.json` in the working
   * folder.
   */
  readonly file?: string | undefined
  readonly env: Environment
  readonly flags?: readonly SettingFlag[] | undefined
  /** Checks of the settings of firmware bridges, by bridge name. */
  readonly bridgeChecks?: BridgeChecks | undefined
  /** Checks the NGSI-LD parts of the settings of uplinks. */
  readonly uplinkCheck?: UplinkCheck | undefined
  /** Checks regular expressions. */
  readonly patternCheck?: PatternCheck | undefined
  /** Base of relative file names; by default the working folder of the process. */
  readonly folder?: string | undefined
}

export interface LoadedSettings {
  readonly settings: Settings
  /** The file that was read, if any. */
  readonly file: string | undefined
  /** Valid settings that are probably not intended. */
  readonly warnings: readonly string[]
  /** Names that were accepted although their component is not built. */
  readonly absent: readonly Absent[]
  readonly mistakes?: undefined
}

export type Loaded = LoadedSettings | { readonly mistakes: readonly Mistake[] }

/** Merged settings, not yet checked. */
interface Raw {
  readonly value: unknown
  readonly mistakes: Mistake[]
  readonly absent: Absent[]
  /** The source of the value at a path. */
  readonly sourceOf: (keys: Keys) => string
}

/** Never throws; all errors are in `mistakes`. */
export async function loadSettings(sources: SettingsSources): Promise<Loaded> {
  const folder = resolve(sources.folder ?? '.')
  const file = findFile(sources, folder)
  const raw = await gather(file, sources)
  const { mistakes } = raw
  const result = v.safeParse(settingsSchema, raw.value)
  const wrong = wrongPlaces(result.issues ?? [])
  mistakes.push(...valueMistakes(wrong, raw))
  const sound = result.success ? result : v.safeParse(settingsSchema, withoutWrong(raw.value, wrong))
  if (!sound.success) return { mistakes }
  const settings = withFullNames(sound.output, folder)
  mistakes.push(...bridgeMistakes(settings, sources.bridgeChecks ?? {}, raw.sourceOf))
  mistakes.push(...uplinkMistakes(settings, sources.uplinkCheck ?? (() => []), raw.sourceOf))
  mistakes.push(...patternMistakes(settings, sources.patternCheck ?? (() => undefined), raw.sourceOf))
  const wrongSections = new Set(
    wrong.filter(({ isUnknown }) => !isUnknown).map(({ keys }) => String(keys[0])),
  )
  mistakes.push(...relationMistakes(settings, { sourceOf: raw.sourceOf, wrongSections }))
  if (mistakes.length > 0) return { mistakes }
  return { settings: frozen(settings), file, absent: raw.absent, warnings: relationWarnings(settings) }
}

function findFile({ file, env }: SettingsSources, folder: string): string | undefined {
  const named = file ?? env['SELVEDGE_CONFIG']
  if (named !== undefined && named !== '') return resolve(folder, named)
  return ['selvedge.yaml', 'selvedge.json']
    .map((name) => resolve(folder, name))
    .find((name) => existsSync(name))
}

async function gather(file: string | undefined, { env, flags }: SettingsSources): Promise<Raw> {
  const fileSource = file ?? 'default'
  const read = file === undefined ? { value: {}, mistakes: [] } : await readSettingsFile(file)
  const environment = readEnvironment(env)
  const flagged = readFlags(flags ?? [])
  const given = [...environment.given, ...flagged.given]
  const copied = settingsCopy(read.value ?? {}, [], fileSource)
  const raw = copied.value ?? {}
  const absent = [...takeAbsentSections(raw), ...environment.absent]
  const mistakes = [...read.mistakes, ...copied.mistakes, ...environment.mistakes, ...flagged.mistakes]
  for (const one of given) {
    const path = one.setting.path.split('.')
    const inner = settingsCopy(one.value, path, one.source)
    mistakes.push(...inner.mistakes)
    place(raw, path, inner.value)
  }
  fillDependentDefaults(raw)
  const sourceOf = (keys: Keys): string => {
    const path = `${keys.join('.')}.`
    return given.findLast(({ setting }) => path.startsWith(`${setting.path}.`))?.source ?? fileSource
  }
  return { value: raw, mistakes, absent, sourceOf }
}

/** Removes sections of components that are not built, and `$schema`, which is for editors. */
function takeAbsentSections(raw: unknown): Absent[] {
  if (!isGroup(raw)) return []
  delete raw['$schema']
  return Object.entries(absentSections).flatMap(([name, part]) => {
    if (!Object.hasOwn(raw, name)) return []
    delete raw[name]
    return [{ setting: name, part }]
  })
}

function readFlags(flags: readonly SettingFlag[]): { given: GivenSetting[]; mistakes: Mistake[] } {
  const settings = new Map(fixedSettings().map((setting) => [setting.path, setting]))
  const given: GivenSetting[] = []
  const mistakes: Mistake[] = []
  for (const { path, text, source } of flags) {
    const setting = settings.get(path)
    if (setting !== undefined) given.push({ setting, value: fromText(setting, text), source })
    else {
      const meant = nearest(path, [...settings.keys()])
      mistakes.push({ path, expected: 'the path of a setting', nearest: meant, source })
    }
  }
  return { given, mistakes }
}

function isGroup(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Sets the value at a path. A path through a value that is not a group is reported elsewhere as a mistake.
 */
function place(raw: unknown, path: readonly string[], value: unknown): void {
  let group = raw
  for (const name of path.slice(0, -1)) {
    if (!isGroup(group)) return
    group = group[name] ??= {}
  }
  if (isGroup(group)) group[path.at(-1)!] = value
}

/** Sets defaults that depend on other settings: a listener that is not loopback gets safer ones. */
function fillDependentDefaults(raw: unknown): void {
  if (!isGroup(raw) || typeof raw['host'] !== 'string' || isLoopbackListener(raw['host'])) return
  const fill = (section: string, name: string, value: unknown): void => {
    raw[section] ??= {}
    const group = raw[section]
    if (isGroup(group)) group[name] ??= value
  }
  fill('provisioning', 'mode', 'quarantine')
  fill('outbound', 'allowLoopback', false)
}

/**
 * Removes invalid values, and lists with invalid items, so that rules between the other settings can be
 * checked.
 */
function withoutWrong(value: unknown, places: readonly WrongPlace[]): unknown {
  const left = structuredClone(value)
  for (const { keys, isUnknown } of places) {
    const list = isUnknown ? -1 : keys.findIndex((key) => typeof key === 'number')
    const removed = list < 0 ? keys : keys.slice(0, list)
    const parent = removed
      .slice(0, -1)
      .reduce((at, key) => (at as Record<string | number, unknown> | undefined)?.[key], left)
    if (isGroup(parent)) delete parent[String(removed.at(-1))]
  }
  return left
}

/** Makes file names absolute: relative to the data folder, which is relative to the working folder. */
function withFullNames(given: v.InferOutput<typeof settingsSchema>, folder: string): Settings {
  const data = resolve(folder, given.data)
  const full = (schema: v.GenericSchema, value: unknown): unknown => {
    const place = placeOf(schema)
    if (isFileName(schema) && typeof value === 'string') return resolve(data, value)
    if (place.kind === 'value' || value === undefined) return value
    if (place.kind === 'list') return (value as unknown[]).map((item) => full(place.each, item))
    const members = Object.entries(value as object).map(([name, member]) => [
      name,
      full(place.kind === 'map' ? place.each : place.entries[name]!, member),
    ])
    return Object.fromEntries(members)
  }
  return { ...(full(settingsSchema, given) as Settings), data }
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const member of Object.values(value)) frozen(member)
  return Object.freeze(value)
}
