/**
 * `fields: auto`: every number, boolean and text of a record becomes a field; names of nested members are
 * joined by dots. For recognized firmware, its convention adds units, the time, and members to exclude.
 */
import { exactDecimal } from '#bridges/exact-decimal.ts'
import { type Unit, writtenUnit } from '#bridges/units.ts'
import type { Decoding, Reading } from '#contract'
import type { Convention } from './conventions.ts'
import type { Units } from './plain-text.ts'
import type { UsualUnit } from './usual-units.ts'
import { asNumber, isScalar, judgeValue, type ReadingScalar, type ValueRules } from './value-rules.ts'

export interface Record {
  readonly shared: Pick<Reading, 'device' | 'observedAt' | 'timeSource'>
  /** Name of a payload that is a single value. */
  readonly field: string
  /** Prefix of member names; empty for none. */
  readonly prefix: string
  /** Position of the record in the payload, for problems. */
  readonly place: string
  /** Members of the record that contain the device or the time. */
  readonly reserved: ReadonlySet<string>
  /** Units written with the values. */
  readonly units: Units | undefined
  readonly convention: Convention | undefined
  readonly rules: ValueRules
}

/** Maximum depth of nested members. */
const depthMax = 8

/** @returns false once the frame is full */
export function decodeAll(item: unknown, record: Record, out: Decoding): boolean {
  const root = record.convention === undefined ? item : record.convention.root
  if (isScalar(root) || root === null) return take(root, [], record, out)
  if (typeof root !== 'object' || Array.isArray(root)) {
    out.refuse('the record must be an object or a single value', record.place || undefined)
    return true
  }
  return walk(root as Members, [], record, out)
}

type Members = Readonly<{ [name: string]: unknown }>

function walk(members: Members, path: readonly string[], record: Record, out: Decoding): boolean {
  const { convention, reserved } = record
  for (const [name, value] of Object.entries(members)) {
    const at = [...path, name]
    if ((path.length === 0 && reserved.has(name)) || convention?.isExcluded(at) === true) continue
    if (isScalar(value) || value === null) {
      if (!take(value, at, record, out)) return false
    } else if (Array.isArray(value) ? value.length > (convention?.listMax ?? 0) : at.length >= depthMax) {
      out.skip()
    } else if (!walk(value as Members, at, record, out)) return false
  }
  return true
}

function take(found: ReadingScalar | null, path: readonly string[], record: Record, out: Decoding): boolean {
  const field = nameOf(path, record)
  const place = record.place === '' ? field : path.length === 0 ? record.place : `${record.place}.${field}`
  const unit = unitOf(path, record)
  const verdict =
    found === null
      ? { reason: undefined }
      : judgeValue(unit === undefined ? found : asNumber(found), record.rules, true)
  if (verdict.value === undefined) {
    if (verdict.reason === undefined) out.skip()
    else out.refuse(verdict.reason, place)
    return true
  }
  const { value } = verdict
  if (typeof value !== 'number' || unit === undefined)
    return out.add({ ...record.shared, field, value }, place)
  const { scale = 1, unitCode, unitText } = unit
  const scaled = scale === 1 ? value : exactDecimal(value * scale)
  const named: Unit = unitCode === undefined ? { unitText } : { unitCode }
  return out.add({ ...record.shared, field, value: scaled, ...named }, place)
}

function nameOf(path: readonly string[], { field, prefix, convention }: Record): string {
  if (path.length === 0) return field
  const front = convention?.prefix === undefined ? prefix : `${convention.prefix}.`
  return front + path.join('.')
}

function unitOf(path: readonly string[], { convention, units }: Record): UsualUnit | undefined {
  const written = units?.get(path.at(-1) ?? '')
  return written === undefined ? convention?.unitOf(path) : writtenUnit(written)
}
