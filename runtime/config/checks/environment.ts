/**
 * Settings from the environment. Selvedge variables derive from the schema: `http.port` is
 * SELVEDGE_HTTP_PORT. Variables of the interface specification and of the components it describes are known
 * by name. An empty variable counts as unset. All other variables are ignored.
 */

import type { Mistake } from '#config/schema/mistakes.ts'
import { nearest } from '#config/schema/nearest.ts'
import { fixedSettings, placeOf, type Setting } from '#config/schema/settings-tree.ts'
import {
  type AbsentSection,
  absentSections,
  aliasVariables,
  ambiguousVariables,
  idleVariables,
  partNames,
} from './foreign-names.ts'

/** A value given for a setting, and its source. */
export interface GivenSetting {
  readonly setting: Setting
  readonly value: unknown
  readonly source: string
}

/** A name that was accepted although its component is not built. */
export interface Absent {
  readonly setting: string
  readonly part: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Selvedge variables that are not settings: the location of the settings file, and variables for tests. */
const otherVariables = ['SELVEDGE_CONFIG', 'SELVEDGE_FAILPOINTS', 'SELVEDGE_CLOCK_SHIFT', 'SELVEDGE_LIMITS']

const ownIn = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined

/**
 * The environment variable of a setting or section: `virtual-sensors.callbackUrl` is
 * SELVEDGE_VIRTUAL_SENSORS_CALLBACK_URL.
 */
export function variableOf(path: string): string {
  return `SELVEDGE_${path.replace(/[A-Z]/g, '_$&').replaceAll(/[.-]/g, '_').toUpperCase()}`
}

export function readEnvironment(env: Environment): {
  given: GivenSetting[]
  absent: Absent[]
  mistakes: Mistake[]
} {
  const ours: ReadonlyMap<string, Setting> = new Map(
    fixedSettings().map((setting) => [variableOf(setting.path), setting]),
  )
  const given: GivenSetting[] = []
  const absent: Absent[] = []
  const mistakes: Mistake[] = []
  for (const [name, text] of Object.entries(env)) {
    if (text === undefined || text === '') continue
    const source = `environment ${name}`
    const aliased = [ownIn(aliasVariables, name) ?? []].flat().map(variableOf)
    const settings = [name, ...aliased].flatMap((variable) => ours.get(variable) ?? [])
    const parts = sectionOf(name)
    for (const setting of settings) given.push({ setting, value: fromText(setting, text), source })
    if (settings.length > 0) continue
    if (Object.hasOwn(idleVariables, name)) absent.push({ setting: name, part: idleVariables[name]! })
    else if (parts.length > 0)
      absent.push({ setting: name, part: parts.map((part) => partNames[part]).join(', ') })
    else if (Object.hasOwn(ambiguousVariables, name)) mistakes.push(ambiguous(name, source))
    else if (name === 'NODE_TLS_REJECT_UNAUTHORIZED' && text === '0') mistakes.push({ ...tlsOff, source })
    else if (name.startsWith('SELVEDGE_') && !otherVariables.includes(name)) {
      mistakes.push(unknown(name))
    }
  }
  return { given, absent, mistakes }
}

/**
 * Converts a text to the kind of the setting: `true`, `17`, `a,b` for a list, JSON for groups. Other text
 * stays text, which the schema then accepts or rejects.
 */
export function fromText({ schema }: Setting, text: string): unknown {
  const { kind } = placeOf(schema)
  if (kind === 'map' || kind === 'list') {
    if (/^\s*[[{]/.test(text)) return parsed(text)
    return kind === 'list' ? text.split(',').map((item) => item.trim()) : text
  }
  if (takes(schema, 'boolean') && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  if (takes(schema, 'number') && /^-?\d+(\.\d+)?$/.test(text)) return Number(text)
  return text
}

/** Whether a schema, or an alternative of a union, has this type. */
function takes(schema: object, type: string): boolean {
  const { type: own, options } = schema as { type?: string; options?: readonly unknown[] }
  return own === type || (own === 'union' && options!.some((option) => takes(option as object, type)))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function sectionOf(name: string): readonly AbsentSection[] {
  const sections = Object.keys(absentSections) as AbsentSection[]
  return sections.filter((section) => name.startsWith(`${variableOf(section)}_`))
}

function unknown(name: string): Mistake {
  const paths = ['config', ...fixedSettings().map(({ path }) => path)]
  const meant = nearest(name.slice('SELVEDGE_'.length), paths)
  const variable = meant === undefined ? undefined : variableOf(meant)
  return { path: name, expected: 'the name of a setting', nearest: variable, source: 'environment' }
}

function ambiguous(name: string, source: string): Mistake {
  const candidates = ambiguousVariables[name]!.map((part) => `${variableOf(part)}_${name}`)
  if (name === 'PORT') candidates.unshift('SELVEDGE_HTTP_PORT')
  return { path: name, expected: `a variable that names its component: ${candidates.join(', ')}`, source }
}

const tlsOff: Omit<Mistake, 'source'> = {
  path: 'NODE_TLS_REJECT_UNAUTHORIZED',
  value: '"0"',
  expected: 'certificate verification; name your own authority in NODE_EXTRA_CA_CERTS instead',
}
