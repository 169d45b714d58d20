/**
 * Plain JSON devices by declared mapping: nothing is guessed but, under `auto`, that every top-level number,
 * boolean and text is a field. The first source whose topic pattern matches reads the frame. Nothing here keeps
 * state: a device is what its topic or its payload says, in every frame.
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
  undecodable,
} from '#contract'
import { momentOf } from './moment.ts'
import { firstMember, valueAt } from './path.ts'
import { checkJsonSettings, type Field, type JsonSettings, type Source } from './settings.ts'
import { filterOf, matchTopic, type Placeholders } from './topic-pattern.ts'

export const json = defineBridge<JsonSettings>({
  name: 'json',
  version: '1.0.0',
  summary: 'Plain JSON by declared topics and paths',
  topics: [],
  contentTypes: [],
  format: 'application/json',
  check: checkJsonSettings,
  claims: (sources) => sources.map(({ topic }) => filterOf(topic)),
  decode(frame, sources) {
    for (const source of sources) {
      const levels = matchTopic(source.topic, frame.topic)
      if (levels !== undefined) return decodeBy(source, levels, frame)
    }
    return undecodable('no source is declared for this topic')
  },
})

/** Where the paths of one record start: the payload itself, or an item of it. */
interface Scope {
  readonly payload: unknown
  readonly item: unknown
  readonly place: string
}

/** What all readings of a record share. */
type Shared = Pick<Reading, 'device' | 'observedAt' | 'timeSource'>

function decodeBy(source: Source, levels: Placeholders, frame: Frame): Decoded {
  const parsed = jsonOf(frame.payload)
  if (parsed.reason !== undefined) return undecodable(parsed.reason)
  const payload = parsed.value
  const out = createDecoding()
  if (source.items === undefined) {
    decodeRecord(source, levels, { payload, item: payload, place: '' }, out)
    return orNothing(out.end())
  }
  const items = valueAt(source.items, payload, payload)
  if (!Array.isArray(items)) return undecodable('there is no list of items', 'items')
  if (items.length > readingsMax) return undecodable(`more than ${readingsMax} items in one frame`, 'items')
  for (let index = 0; index < items.length; index++) {
    const scope = { payload, item: items[index] as unknown, place: `[${index}]` }
    if (!decodeRecord(source, levels, scope, out)) break
  }
  return items.length === 0 ? out.end() : orNothing(out.end())
}

/** A frame that has no field at all is most likely read by a mistaken mapping: it must not vanish. */
const orNothing = (decoded: Decoded): Decoded =>
  decoded.readings.length + decoded.problems.length > 0
    ? decoded
    : undecodable('none of the declared fields is in the payload')

/** @returns false once the frame is full */
function decodeRecord(source: Source, levels: Placeholders, scope: Scope, out: Decoding): boolean {
  const shared = sharedOf(source, levels, scope)
  if (typeof shared === 'string') {
    out.refuse(shared, scope.place === '' ? undefined : scope.place)
    return true
  }
  const field = levels['field']
  if (source.fields === 'auto') return decodeAll(source, field, shared, scope, out)
  return source.fields.every((one) => decodeField(one, field, shared, scope, out))
}

/** Device and time of a record, or why it has none. A time that is declared but absent means "now". */
function sharedOf({ device, time }: Source, levels: Placeholders, scope: Scope): Shared | string {
  const named = device === undefined ? levels['device'] : valueAt(device, scope.item, scope.payload)
  const name = typeof named === 'number' ? String(named) : named
  if (typeof name !== 'string') return 'there is no device'
  const written = time === undefined ? undefined : valueAt(time.path, scope.item, scope.payload)
  if (time === undefined || written === undefined || written === null)
    return { device: name, timeSource: 'gateway' }
  const { at, reason } = momentOf(written, time.format)
  return reason === undefined
    ? { device: name, observedAt: at, timeSource: 'device' }
    : `the time in ${firstMember(time.path) ?? 'the payload'}: ${reason}`
}

/** Every number, boolean and text of a record, or the record itself where the topic names its field. */
function decodeAll(
  source: Source,
  field: string | undefined,
  shared: Shared,
  { item, place }: Scope,
  out: Decoding,
): boolean {
  if (isScalar(item)) {
    if (field !== undefined) return out.add({ ...shared, field, value: item }, place || field)
    out.refuse('the payload is one value and the topic names no field', place || undefined)
    return true
  }
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    out.refuse('there are no members to read', place || undefined)
    return true
  }
  const taken = [source.device, source.time?.path].map((path) => path && firstMember(path))
  const prefix = field === undefined ? '' : `${field}.`
  for (const [name, value] of Object.entries(item as Readonly<Record<string, unknown>>)) {
    if (taken.includes(name) || !(isScalar(value) || value === null)) continue
    if (!out.add({ ...shared, field: prefix + name, value }, `${place}${place && '.'}${name}`)) return false
  }
  return true
}

function decodeField(
  field: Field,
  named: string | undefined,
  shared: Shared,
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
  out.refuse(reason, where)
  return true
}

function valueOfField(field: Field, found: unknown): Parsed<Scalar> {
  if (found === null) return { reason: 'null is no value' }
  if (field.invalid.has(found)) return { reason: `${JSON.stringify(found)} means no value` }
  if (!isScalar(found)) return { reason: 'not a number, boolean or text' }
  return field.isQuantity ? quantityOf(field, found) : { value: found }
}

/** A field with a unit, a scale or an offset is a number, also when it is written as text. */
function quantityOf({ scale, offset }: Field, found: Scalar): Parsed<number> {
  const number = typeof found === 'string' && decimalText.test(found) ? Number(found) : found
  if (typeof number !== 'number') return { reason: `${JSON.stringify(found).slice(0, 64)} is not a number` }
  return { value: scale === 1 && offset === 0 ? number : exactDecimal(number * scale + offset) }
}

const decimalText = /^\s*[-+]?(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:e[-+]?\d{1,3})?\s*$/i

/** The unit in the payload where there is one, else the declared one. */
function unitOf({ unitPath, unitCode, unitText }: Field, item: unknown, payload: unknown): Unit {
  const written = unitPath === undefined ? undefined : valueAt(unitPath, item, payload)
  return typeof written === 'string' && written !== '' ? writtenUnit(written) : { unitCode, unitText }
}

type Scalar = number | boolean | string

const isScalar = (value: unknown): value is Scalar =>
  typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string'
