/**
 * Reads plain JSON devices by declared mapping, and payloads other than JSON: single values, named values,
 * CSV lines. Under `auto` every number, boolean and text is a field, and widely used firmware is recognized.
 * The first source whose topic pattern matches reads the frame. The bridge keeps no state: each frame's topic
 * or payload identifies the device.
 */
import { exactDecimal } from '#bridges/exact-decimal.ts'
import { type Unit, writtenUnit } from '#bridges/units.ts'
import {
  createDecoding,
  type Decoded,
  type Decoding,
  defineBridge,
  type Frame,
  jsonOf,
  type Parsed,
  type Reading,
  readingsMax,
  textOf,
  undecodable,
} from '#contract'
import { decodeAll } from './auto.ts'
import { type Convention, recognize } from './conventions.ts'
import { firstMember, valueAt } from './json-path.ts'
import { momentOf } from './moment.ts'
import { plainOf, type Units } from './plain-text.ts'
import { proposeSource } from './propose.ts'
import { checkJsonSettings, type Field, type JsonSettings, type Source } from './settings.ts'
import { filterOf, matchTopic, type Placeholders } from './topic-pattern.ts'
import { usualTimeOf } from './usual-time.ts'
import {
  asNumber,
  isScalar,
  judgeValue,
  type ReadingScalar,
  skipped,
  type ValueVerdict,
} from './value-rules.ts'

export const json = defineBridge<JsonSettings>({
  name: 'json',
  version: '1.1.0',
  summary: 'Plain JSON, text and CSV by declared topics and paths; Tasmota, Shelly, Zigbee2MQTT, TTN',
  topics: [],
  contentTypes: [],
  format: 'application/json',
  check: checkJsonSettings,
  claims: (sources) => sources.map(({ topic }) => filterOf(topic)),
  decode,
  propose: (frame) =>
    proposeSource(frame, (source) => {
      const { settings } = checkJsonSettings([source])
      return settings === undefined ? undecodable('invalid source') : decode(frame, settings)
    }),
})

function decode(frame: Frame, sources: JsonSettings): Decoded {
  for (const source of sources) {
    const levels = matchTopic(source.topic, frame.topic)
    if (levels !== undefined) return decodeBy(source, levels, frame)
  }
  return undecodable('no source is declared for this topic')
}

/** Starting point for the paths of one record: the payload itself, or an item of it. */
interface Scope {
  readonly frame: Frame
  readonly levels: Placeholders
  readonly payload: unknown
  readonly item: unknown
  readonly place: string
  /** Units written with the values of plain text. */
  readonly units: Units | undefined
}

/** Members that all readings of a record share. */
type Shared = Pick<Reading, 'device' | 'observedAt' | 'timeSource'>

/** A payload converted to JSON values. */
interface Content {
  readonly payload: unknown
  /** Lines of a table; undefined represents a malformed line. */
  readonly rows?: readonly unknown[]
  readonly units?: Units
}

function decodeBy(source: Source, levels: Placeholders, frame: Frame): Decoded {
  const { value: content, reason } = contentOf(frame.payload, source)
  if (content === undefined) return undecodable(reason)
  const { payload, units } = content
  const out = createDecoding()
  const scope = { frame, levels, payload, units }
  const items = content.rows ?? (source.items && valueAt(source.items, payload, payload))
  if (content.rows === undefined && source.items === undefined) {
    decodeRecord(source, { ...scope, item: payload, place: '' }, out)
    return orNothing(out.end())
  }
  if (!Array.isArray(items)) return undecodable('the path of items must lead to a list', 'items')
  if (items.length > readingsMax) return undecodable(`more than ${readingsMax} items in one frame`, 'items')
  for (let index = 0; index < items.length; index++) {
    const item = items[index] as unknown
    const place = items.length === 1 && content.rows !== undefined ? '' : `[${index}]`
    if (item === undefined) out.refuse('the number of cells does not match the columns', place || undefined)
    else if (!decodeRecord(source, { ...scope, item, place }, out)) break
  }
  return items.length === 0 ? out.end() : orNothing(out.end())
}

function contentOf(bytes: Uint8Array, { payload: kind, columns }: Source): Parsed<Content> {
  const parsed = kind === 'auto' || kind === 'json' ? jsonOf(bytes) : undefined
  if (parsed !== undefined && parsed.reason === undefined) return { value: { payload: parsed.value } }
  const text = textOf(bytes)
  if (text.reason !== undefined) return text
  if (text.value.trim() === '') return { reason: 'the payload is empty' }
  if (kind === 'text') return { value: { payload: text.value } }
  // Text that begins like JSON is invalid JSON, not plain text.
  if (parsed !== undefined && (kind === 'json' || /^\s*[[{"]/.test(text.value)))
    return { reason: parsed.reason }
  const plain = plainOf(text.value, columns, kind === 'csv')
  if (plain.value === undefined) return plain
  if (plain.value.kind === 'rows') return { value: { payload: plain.value.rows, rows: plain.value.rows } }
  const { units } = plain.value
  return { value: { payload: plain.value.kind === 'value' ? plain.value.value : plain.value.record, units } }
}

/** A frame without any field probably has a wrong mapping, so it is reported as undecodable. */
const orNothing = (decoded: Decoded): Decoded =>
  decoded.readings.length + decoded.problems.length + (decoded.skipped ?? 0) > 0
    ? decoded
    : undecodable('none of the declared fields is in the payload')

/** @returns false once the frame is full */
function decodeRecord(source: Source, scope: Scope, out: Decoding): boolean {
  const { frame, item, place } = scope
  const at = place === '' ? undefined : place
  const time = { zone: source.zone, receivedAt: frame.receivedAt }
  const convention =
    source.fields === 'auto'
      ? recognize({ topic: frame.topic.split('/'), payload: item, place: time })
      : undefined
  if (typeof convention === 'string') {
    out.refuse(convention, at)
    return true
  }
  const usualTime =
    source.time === undefined && convention === undefined && (source.fields === 'auto' || source.zone)
      ? usualTimeOf(item, time)
      : undefined
  const shared = sharedOf(source, scope, convention ?? usualTime)
  if (typeof shared === 'string') {
    out.refuse(shared, at)
    return true
  }
  const named = scope.levels['field']
  if (source.fields !== 'auto')
    return source.fields.every((one) => decodeField(one, { named, shared }, scope, out))
  const isEvent = convention !== undefined && isEmptyGroup(convention.root)
  if (isEvent) out.skip()
  const members = [source.device, source.time?.path].map((path) => path && firstMember(path))
  const reserved = [...members, usualTime?.name].filter((name) => name !== undefined)
  const record = {
    shared,
    place,
    convention,
    rules: source.rules,
    units: scope.units,
    reserved: new Set(reserved),
    field: named ?? valueName(source, frame.topic),
    prefix: named === undefined ? '' : `${named}.`,
  }
  return decodeAll(item, record, out)
}

const isEmptyGroup = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0

/**
 * The field name of a single-value payload: the levels after the pattern, else the pattern's last text level,
 * else `value`.
 */
function valueName({ topic: { levels, tail } }: Source, topic: string): string {
  const rest = tail ? topic.split('/').slice(levels.length).join('.') : ''
  const text = levels.length > 1 ? levels.at(-1)?.text : undefined
  return rest || text || 'value'
}

/** Device and time of a record, or the reason why it has none. A declared but absent time means "now". */
function sharedOf(
  source: Source,
  { frame, levels, item, payload }: Scope,
  usual: Pick<Convention, 'observedAt' | 'timeSource'> | undefined,
): Shared | string {
  const { device, deviceName, time, zone } = source
  const named = device === undefined ? (deviceName ?? levels['device']) : valueAt(device, item, payload)
  const name = typeof named === 'number' ? String(named) : named
  if (typeof name !== 'string') return 'the device id is missing'
  if (time === undefined && usual?.observedAt !== undefined)
    return { device: name, observedAt: usual.observedAt, timeSource: usual.timeSource ?? 'device' }
  const written = time === undefined ? undefined : valueAt(time.path, item, payload)
  if (time === undefined || written === undefined || written === null)
    return { device: name, timeSource: 'gateway' }
  const { at, reason } = momentOf(written, time.format, { zone, receivedAt: frame.receivedAt })
  return reason === undefined
    ? { device: name, observedAt: at, timeSource: 'device' }
    : `the time in ${firstMember(time.path) ?? 'the payload'}: ${reason}`
}

function decodeField(
  field: Field,
  { named, shared }: { named: string | undefined; shared: Shared },
  { item, payload, place }: Scope,
  out: Decoding,
): boolean {
  const name = field.name ?? named ?? ''
  const where = place === '' ? name : `${place}.${name}`
  const found = valueAt(field.path, item, payload)
  if (found === undefined) return true
  const { value, reason } = valueOfField(field, found)
  if (value !== undefined) {
    const unit = field.isQuantity ? unitOf(field, item, payload) : {}
    return out.add({ ...shared, field: name, value, ...unit }, where)
  }
  if (reason === undefined) out.skip()
  else out.refuse(reason, where)
  return true
}

function valueOfField(field: Field, found: unknown): ValueVerdict {
  if (found === null || field.invalid.has(found)) return skipped
  if (!isScalar(found)) return { reason: 'must be a number, boolean or text' }
  const verdict = judgeValue(found, field.rules, false)
  return verdict.value === undefined || !field.isQuantity ? verdict : quantityOf(field, verdict.value)
}

/** A field with a unit, a scale or an offset is numeric, even if it is written as text. */
function quantityOf({ scale, offset }: Field, found: ReadingScalar): ValueVerdict {
  const number = asNumber(found)
  if (typeof number !== 'number') return { reason: `${JSON.stringify(found).slice(0, 64)} is not a number` }
  return { value: scale === 1 && offset === 0 ? number : exactDecimal(number * scale + offset) }
}

/** The unit in the payload, else the declared one. */
function unitOf({ unitPath, unitCode, unitText }: Field, item: unknown, payload: unknown): Unit {
  const written = unitPath === undefined ? undefined : valueAt(unitPath, item, payload)
  return typeof written === 'string' && written !== '' ? writtenUnit(written) : { unitCode, unitText }
}
