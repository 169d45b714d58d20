/**
 * The settings of the analyser as its page shows them: environment name and value, secrets hidden. Some can
 * be changed while the analyser runs; such a change is stored in the plugin's file and has precedence.
 */
import type { Json } from '#contract'
import { isObject, own } from '#ngsi-ld/values/json.ts'
import { badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Edits } from './edit-statements.ts'

/** Settings that can be changed while the analyser runs. */
export interface EditableSettings {
  readonly writeIntervalMs: number
  readonly labelSimilarity: number
  readonly maxLogEntries: number
  readonly enableNa: boolean
}

interface Bounds {
  readonly min: number
  readonly max: number
  readonly isWhole: boolean
}

/** The bounds of the schema of settings; of a flag there are none. */
const editable: Readonly<Record<keyof EditableSettings, Bounds | 'flag'>> = {
  writeIntervalMs: { min: 0, max: 3_600_000, isWhole: true },
  labelSimilarity: { min: 0, max: 1, isWhole: false },
  maxLogEntries: { min: 1, max: 500, isWhole: true },
  enableNa: 'flag',
}

/** Variables of the original component by setting. */
const aliases: Readonly<Record<string, string>> = {
  broker: 'NGSI_ADDRESS',
  host: 'SE_HOST',
  port: 'SE_PORT',
  callbackUrl: 'SE_CALLBACK',
}

/** Settings that are listed even if they are not set. */
const unset: Readonly<Record<string, undefined>> = Object.fromEntries(
  Object.keys(aliases).map((setting) => [setting, undefined]),
)

export interface ConfigurationRow {
  /** Name in the section of the settings. */
  readonly setting: string
  /** Name in the environment. */
  readonly name: string
  /** Name of the original component's variable that sets it, too. */
  readonly alias?: string | undefined
  /** Value in effect as text; `(hidden)` for a secret, empty if it is not set. */
  readonly value: string
  readonly isEditable: boolean
  /** Whether an operator changed it on the page. */
  readonly isChanged: boolean
}

export interface Configuration {
  value<Name extends keyof EditableSettings>(name: Name): EditableSettings[Name]
  rows(): readonly ConfigurationRow[]
  /** @throws notFound, badRequestData */
  put(name: string, body: Json): ConfigurationRow
  /** Takes the value of the settings again. @throws notFound */
  reset(name: string): ConfigurationRow
}

export function createConfiguration(settings: EditableSettings, edits: Edits): Configuration {
  let changed = edits.all()
  function value<Name extends keyof EditableSettings>(name: Name): EditableSettings[Name] {
    const edit = changed.get(name)
    // Only valid values are stored.
    return typeof edit === typeof settings[name] ? (edit as EditableSettings[Name]) : settings[name]
  }

  function change(name: string, work: (name: keyof EditableSettings) => void): ConfigurationRow {
    if (!isEditable(name)) throw notFound(`no setting ${name} can be changed while the analyser runs`)
    work(name)
    changed = edits.all()
    return rowOf(name, value(name))
  }

  const rowOf = (setting: string, given: unknown): ConfigurationRow => ({
    setting,
    name: `SELVEDGE_QUALITY_${setting.replaceAll(/\.|(?=[A-Z])/g, '_').toUpperCase()}`,
    alias: own(aliases, setting),
    value: settingText(setting, given),
    isEditable: isEditable(setting),
    isChanged: changed.has(setting),
  })

  return Object.freeze({
    value,
    rows: () =>
      Object.entries({ ...unset, ...settings })
        .flatMap(([setting, given]) => membersOf(setting, given))
        .map(([setting, given]) => rowOf(setting, isEditable(setting) ? value(setting) : given)),
    put: (name, body) =>
      change(name, (setting) => {
        const given = isObject(body) ? own(body, 'value') : undefined
        const mistake = mistakeOf(given, editable[setting])
        if (given === undefined || mistake !== undefined) throw badRequestData(mistake ?? '', 'value')
        edits.put(setting, given)
      }),
    reset: (name) => change(name, (setting) => edits.delete(setting)),
  } satisfies Configuration)
}

/** Reads the text of a form field. */
export const settingOf = (text: string): Json =>
  /^(true|false)$/i.test(text) ? /^true$/i.test(text) : Number(text)

function mistakeOf(given: Json | undefined, allowed: Bounds | 'flag'): string | undefined {
  if (allowed === 'flag') return typeof given === 'boolean' ? undefined : 'must be true or false'
  const { min, max, isWhole } = allowed
  const isValid = typeof given === 'number' && given >= min && given <= max
  return isValid && (!isWhole || Number.isInteger(given))
    ? undefined
    : `must be a ${isWhole ? 'whole ' : ''}number from ${min} to ${max}`
}

/** The members of a group, each with a name in the environment of its own. A map by label has none. */
const membersOf = (setting: string, given: unknown): (readonly [string, unknown])[] =>
  isObject(given) && setting !== 'usualProperties'
    ? Object.entries(given).map(([name, member]) => [`${setting}.${name}`, member] as const)
    : [[setting, given]]

const isEditable = (name: string): name is keyof EditableSettings => Object.hasOwn(editable, name)

const secretName = /pass|secret|token|key|credential/i

/** Text of a setting. Secrets are hidden: values of secret names (not file names), and users in URLs. */
export function settingText(name: string, value: unknown): string {
  if (value === undefined) return ''
  const hide = (member: string, inner: unknown): unknown =>
    secretName.test(member) && !/file$/i.test(member) ? '(hidden)' : inner
  const hidden = hide(name, value)
  const text = typeof hidden === 'string' ? hidden : JSON.stringify(hidden, hide)
  return text.replaceAll(/(\/\/)[^/@\s"]*@/g, '$1(hidden)@')
}
