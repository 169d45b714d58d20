/**
 * Settings of the plain JSON bridge: a list of sources, each with a topic pattern and the paths of the values
 * in its payloads. The check reports all problems at once and compiles patterns, paths and units for the
 * decoder. The README in this folder describes every key.
 */
import { writtenUnit } from '#bridges/units.ts'
import { type Checked, readingsMax, type SettingProblem } from '#contract'
import { lastName, type Path, parsePath } from './json-path.ts'
import { parseTimeZone, type TimeZone } from './local-time.ts'
import { type TimeFormat, timeFormats } from './moment.ts'
import { hasPlaceholder, parseTopicPattern, type TopicPattern } from './topic-pattern.ts'
import { isScalar, othersChoices, type ReadingScalar, type ValueRules } from './value-rules.ts'

/** A source as written in the settings. */
export interface JsonSource {
  readonly topic: string
  readonly device?: string
  readonly deviceName?: string
  readonly payload?: PayloadKind
  readonly columns?: readonly string[]
  readonly timeZone?: string
  readonly values?: Readonly<Record<string, ReadingScalar | null>>
  readonly others?: ValueRules['others']
  readonly items?: string
  readonly time?: { readonly path: string; readonly format: TimeFormat }
  readonly fields: 'auto' | readonly JsonField[]
}

export interface JsonField {
  readonly path: string
  readonly name?: string
  readonly unit?: string
  readonly unitPath?: string
  readonly unitCode?: string
  readonly scale?: number
  readonly offset?: number
  readonly invalid?: readonly (number | string)[]
  readonly values?: Readonly<Record<string, ReadingScalar | null>>
  readonly others?: ValueRules['others']
}

/** auto: JSON, and any other payload as plain text. */
const payloadKinds = ['auto', 'json', 'text', 'csv'] as const
export type PayloadKind = (typeof payloadKinds)[number]

/** A validated source. */
export interface Source {
  readonly topic: TopicPattern
  readonly device: Path | undefined
  readonly deviceName: string | undefined
  readonly payload: PayloadKind
  /** For CSV lines. */
  readonly columns: readonly string[] | undefined
  /** For times without a time zone. */
  readonly zone: TimeZone | undefined
  /** For `auto`. */
  readonly rules: ValueRules
  readonly items: Path | undefined
  readonly time: { readonly path: Path; readonly format: TimeFormat } | undefined
  readonly fields: 'auto' | readonly Field[]
}

export interface Field {
  readonly path: Path
  /** Undefined if the topic names the field. */
  readonly name: string | undefined
  readonly unitCode: string | undefined
  readonly unitText: string | undefined
  readonly unitPath: Path | undefined
  readonly scale: number
  readonly offset: number
  /** A quantity is numeric; numeric text is converted, other text is rejected. */
  readonly isQuantity: boolean
  readonly invalid: ReadonlySet<unknown>
  readonly rules: ValueRules
}

export type JsonSettings = readonly Source[]

type Group = Readonly<Record<string, unknown>>
type Note = (path: string, expected: string) => undefined

const ruleKeys = ['values', 'others']
const sourceKeys = [
  ...['topic', 'device', 'deviceName', 'payload', 'columns', 'items', 'time', 'timeZone', 'fields'],
  ...ruleKeys,
]
const timeKeys = ['path', 'format']
const fieldKeys = ['path', 'name', 'unit', 'unitPath', 'unitCode', 'scale', 'offset', 'invalid', ...ruleKeys]

export function checkJsonSettings(raw: unknown): Checked<JsonSettings> {
  const problems: SettingProblem[] = []
  const note: Note = (path, expected) => {
    problems.push({ path, expected })
  }
  if (!Array.isArray(raw)) return { problems: [{ path: '', expected: 'a list of sources' }] }
  const sources = raw.map((one: unknown, index) => sourceOf(one, `[${index}]`, note))
  if (problems.length > 0) return { problems }
  return { settings: sources as Source[], problems: [] }
}

function sourceOf(raw: unknown, at: string, note: Note): Source | undefined {
  const group = groupOf(raw, sourceKeys, at, note)
  if (group === undefined) return undefined
  const topic = topicOf(group['topic'], `${at}.topic`, note)
  const device = optionalPath(group['device'], `${at}.device`, note)
  const items = optionalPath(group['items'], `${at}.items`, note)
  const time = timeOf(group['time'], `${at}.time`, note)
  const deviceName = optionalText(group['deviceName'], `${at}.deviceName`, note)
  const payload = choiceOf(payloadKinds, group['payload'] ?? 'auto', `${at}.payload`, note)
  const columns = columnsOf(group['columns'], `${at}.columns`, note)
  const zone = zoneOf(group['timeZone'], `${at}.timeZone`, note)
  const rules = rulesOf(group, at, undefined, note)
  const fields = fieldsOf(group['fields'], `${at}.fields`, { topic, rules }, note)
  if (topic === undefined || fields === undefined || payload === undefined) return undefined
  const isNamed = group['device'] !== undefined || group['deviceName'] !== undefined
  if (!isNamed && !hasPlaceholder(topic, 'device'))
    return note(
      `${at}.device`,
      'the path of the device, or deviceName, because the topic has no level {device}',
    )
  return { topic, device, deviceName, payload, columns, zone, rules, items, time, fields }
}

function zoneOf(raw: unknown, at: string, note: Note): TimeZone | undefined {
  if (raw === undefined) return undefined
  const zone = typeof raw === 'string' ? parseTimeZone(raw) : undefined
  return zone ?? note(at, 'a time zone such as Europe/Vienna or +02:00')
}

const cellsMax = 256

function columnsOf(raw: unknown, at: string, note: Note): readonly string[] | undefined {
  if (raw === undefined) return undefined
  const isList = Array.isArray(raw) && raw.length > 0 && raw.length <= cellsMax
  const names = isList ? raw.filter((one): one is string => typeof one === 'string' && one !== '') : []
  const own = names.filter((one) => one !== '-')
  if (isList && names.length === raw.length && new Set(own).size === own.length) return names
  return note(at, `a list of 1 to ${cellsMax} distinct names; - omits a column`)
}

function choiceOf<T extends string>(
  choices: readonly T[],
  raw: unknown,
  at: string,
  note: Note,
): T | undefined {
  return choices.find((one) => one === raw) ?? note(at, `one of ${choices.join(', ')}`)
}

const valuesMax = 64

/** Rules of a field, with those of its source as defaults. */
function rulesOf(group: Group, at: string, outer: ValueRules | undefined, note: Note): ValueRules {
  const { values = outer?.values, others = outer?.others ?? 'take' } = {
    values: valuesOf(group['values'], `${at}.values`, note),
    others:
      group['others'] === undefined
        ? undefined
        : choiceOf(othersChoices, group['others'], `${at}.others`, note),
  }
  return { values: values ?? new Map(), others }
}

function valuesOf(raw: unknown, at: string, note: Note): ValueRules['values'] | undefined {
  if (raw === undefined) return undefined
  const isGroup = typeof raw === 'object' && raw !== null && !Array.isArray(raw)
  const entries = isGroup ? Object.entries(raw) : []
  const isSound = entries.every(([, value]) => value === null || (isScalar(value) && !Number.isNaN(value)))
  if (isGroup && isSound && entries.length <= valuesMax)
    return new Map(entries as [string, ReadingScalar | null][])
  return note(at, `a group of at most ${valuesMax} values, each a number, boolean, text, or null to skip it`)
}

function topicOf(raw: unknown, at: string, note: Note): TopicPattern | undefined {
  const topic = typeof raw === 'string' ? parseTopicPattern(raw) : undefined
  return topic ?? note(at, 'a topic with whole levels such as {device}, + and a last #')
}

function timeOf(raw: unknown, at: string, note: Note): Source['time'] {
  if (raw === undefined) return undefined
  const group = groupOf(raw, timeKeys, at, note)
  if (group === undefined) return undefined
  const path = pathOf(group['path'], `${at}.path`, note)
  const format = timeFormats.find((one) => one === group['format'])
  if (format === undefined) return note(`${at}.format`, `one of ${timeFormats.join(', ')}`)
  return path && { path, format }
}

function fieldsOf(
  raw: unknown,
  at: string,
  { topic, rules }: { topic: TopicPattern | undefined; rules: ValueRules },
  note: Note,
): Source['fields'] | undefined {
  if (raw === 'auto') return raw
  if (!Array.isArray(raw) || raw.length === 0) return note(at, '"auto" or a list of one or more fields')
  const isNamed = topic !== undefined && hasPlaceholder(topic, 'field')
  if (raw.length > readingsMax) return note(at, `at most ${readingsMax} fields`)
  const fields = raw.map((one: unknown, index) => fieldOf(one, `${at}[${index}]`, { isNamed, rules }, note))
  const names = fields.map((field) => field?.name ?? '{field}')
  for (const [index, name] of names.entries())
    if (fields[index] !== undefined && names.indexOf(name) < index)
      note(`${at}[${index}].name`, `a unique name; ${name} is already used`)
  return fields.includes(undefined) ? undefined : (fields as Field[])
}

function fieldOf(
  raw: unknown,
  at: string,
  { isNamed, rules: outer }: { isNamed: boolean; rules: ValueRules },
  note: Note,
): Field | undefined {
  const group = groupOf(raw, fieldKeys, at, note)
  if (group === undefined) return undefined
  const path = pathOf(group['path'], `${at}.path`, note)
  const unitPath = optionalPath(group['unitPath'], `${at}.unitPath`, note)
  const name =
    optionalText(group['name'], `${at}.name`, note) ?? (isNamed ? undefined : path && lastName(path))
  const unit = optionalText(group['unit'], `${at}.unit`, note)
  const stated = optionalText(group['unitCode'], `${at}.unitCode`, note)
  const scale = optionalNumber(group['scale'], `${at}.scale`, note)
  const offset = optionalNumber(group['offset'], `${at}.offset`, note)
  const rules = rulesOf(group, at, outer, note)
  const invalid = invalidOf(group['invalid'], `${at}.invalid`, note)
  if (path === undefined) return undefined
  if (name === undefined && !isNamed) return note(`${at}.name`, 'a name, because the path contains none')
  const { unitCode, unitText } = stated === undefined ? writtenUnit(unit) : { unitCode: stated }
  const isQuantity = [unit, stated, scale, offset, unitPath].some((one) => one !== undefined)
  return {
    path,
    name,
    unitCode,
    unitText,
    unitPath,
    isQuantity,
    invalid,
    rules,
    scale: scale ?? 1,
    offset: offset ?? 0,
  }
}

function invalidOf(raw: unknown, at: string, note: Note): ReadonlySet<unknown> {
  if (raw === undefined) return new Set()
  const isList = Array.isArray(raw) && raw.every((one) => typeof one === 'number' || typeof one === 'string')
  if (!isList) note(at, 'a list of numbers and texts that represent missing values')
  return new Set(isList ? (raw as readonly unknown[]) : [])
}

function groupOf(raw: unknown, keys: readonly string[], at: string, note: Note): Group | undefined {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw))
    return note(at, `a group of ${keys.join(', ')}`)
  for (const key of Object.keys(raw))
    if (!keys.includes(key)) note(`${at}.${key}`, `one of ${keys.join(', ')}`)
  return raw as Group
}

function pathOf(raw: unknown, at: string, note: Note): Path | undefined {
  const path = typeof raw === 'string' ? parsePath(raw) : undefined
  return path ?? note(at, 'a path such as a.b[0].c')
}

const optionalPath = (raw: unknown, at: string, note: Note): Path | undefined =>
  raw === undefined ? undefined : pathOf(raw, at, note)

function optionalText(raw: unknown, at: string, note: Note): string | undefined {
  if (raw === undefined || (typeof raw === 'string' && raw !== '')) return raw
  return note(at, 'a non-empty text')
}

function optionalNumber(raw: unknown, at: string, note: Note): number | undefined {
  if (raw === undefined || (typeof raw === 'number' && Number.isFinite(raw))) return raw
  return note(at, 'a finite number')
}
