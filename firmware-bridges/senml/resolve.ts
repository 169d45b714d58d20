/**
 * Resolves a SenML pack (RFC 8428 4.6). Base fields apply to all records after them; names, times and values
 * are added to their bases; unsupported content is rejected. A wrong base field or an unknown mandatory label
 * invalidates the whole pack, a wrong regular field only its record. Readings are in the order of the pack.
 */
import { exactDecimal } from '#bridges/exact-decimal.ts'
import { senmlUnit, timesSecond, type Unit } from '#bridges/units.ts'
import { createDecoding, type Decoded, type Decoding, type Frame, type Reading, undecodable } from '#contract'
import { channelOf, isName } from './name.ts'
import type { RawRecord } from './pack.ts'

/** Current base fields; the initial values are the defaults of RFC 8428 4.5 for missing ones. */
interface Bases {
  name: string
  time: number
  unit: string | undefined
  value: number
  sum: number | undefined
  version: number
}

interface Moment {
  readonly observedAt?: number | undefined
  readonly timeSource: 'device' | 'gateway'
}

const versionDefault = 10
/**
 * Feature 4 of RFC 9100, secondary units, added to version 10: the only registered feature that is
 * implemented.
 */
const versionWithSecondaryUnits = 26
/** Times below this are relative to now (RFC 8428 4.5.3). */
const absoluteTimeMin = 2 ** 28

type MemberType = 'string' | 'number' | 'boolean'

const baseLabels = table({
  bn: 'string',
  bt: 'number',
  bu: 'string',
  bv: 'number',
  bs: 'number',
  bver: 'number',
})
const regularLabels = table({
  n: 'string',
  u: 'string',
  v: 'number',
  vs: 'string',
  vb: 'boolean',
  vd: 'string',
  s: 'number',
  t: 'number',
  ut: 'number',
})

/** Unpadded base64url (RFC 4648 5); a length of 1 modulo 4 is impossible. */
const base64url = /^(?:[\w-]{4})*(?:[\w-]{2,3})?$/

/** @param local the device of names without segments */
export function resolvePack(records: readonly RawRecord[], frame: Frame, local: string): Decoded {
  const bases: Bases = { name: '', time: 0, unit: undefined, value: 0, sum: undefined, version: 0 }
  const out = createDecoding()
  for (let index = 0; index < records.length; index++) {
    const record = records[index]!
    const place = `[${index}]`
    const { regular, wrongBase, wrong } = survey(record)
    const packProblem = wrongBase ?? versionProblem(record, bases)
    if (packProblem !== undefined) return undecodable(packProblem.reason, `${place}.${packProblem.label}`)
    takeBases(record, bases)
    if (!regular) continue
    const problem = wrong ?? contentProblem(record, bases)
    if (problem !== undefined) out.refuse(problem.reason, `${place}.${problem.label}`)
    else if (!resolveRecord(record, bases, { frame, local, place, out })) break
  }
  return out.end()
}

interface Problem {
  readonly label: string
  readonly reason: string
}

interface Survey {
  /** Whether the record has more than base fields. */
  regular: boolean
  /** A problem that invalidates the pack. */
  wrongBase?: Problem
  /** A problem that invalidates the record. */
  wrong?: Problem
}

/** Checks labels and types of a record in one pass. */
function survey(record: RawRecord): Survey {
  const found: Survey = { regular: false }
  for (const label in record) {
    const base = baseLabels.get(label)
    const type = base ?? regularLabels.get(label)
    if (type === undefined) {
      if (!label.endsWith('_')) continue
      found.wrongBase = { label: label.slice(0, 64), reason: 'a mandatory label is not supported' }
    } else {
      const reason = typeProblem(label, record[label], type)
      if (base === undefined) found.regular = true
      if (reason !== undefined) found[base === undefined ? 'wrong' : 'wrongBase'] ??= { label, reason }
    }
  }
  return found
}

function typeProblem(label: string, value: unknown, type: MemberType): string | undefined {
  if (typeof value !== type) return `${label} must be a ${type}`
  return type === 'number' && !Number.isFinite(value) ? `${label} must be finite` : undefined
}

function versionProblem(record: RawRecord, bases: Bases): Problem | undefined {
  const stated = record['bver'] as number | undefined
  const version = stated ?? (bases.version === 0 ? versionDefault : bases.version)
  const refused = (reason: string): Problem => ({ label: 'bver', reason })
  if (!Number.isInteger(version) || version < 1) return refused('a version must be a positive integer')
  if (version > versionDefault && version !== versionWithSecondaryUnits)
    return refused(`version ${version} is not supported`)
  if (bases.version !== 0 && version !== bases.version)
    return refused('all records must have the same version')
  bases.version = version
  return undefined
}

function takeBases(record: RawRecord, bases: Bases): void {
  const given = record as Readonly<{ bn?: string; bt?: number; bu?: string; bv?: number; bs?: number }>
  if (given.bn !== undefined) bases.name = given.bn
  if (given.bt !== undefined) bases.time = given.bt
  if (given.bu !== undefined) bases.unit = given.bu
  if (given.bv !== undefined) bases.value = given.bv
  if (given.bs !== undefined) bases.sum = given.bs
}

interface Target {
  readonly frame: Frame
  readonly local: string
  readonly place: string
  readonly out: Decoding
}

/** @returns false once the frame is full */
function resolveRecord(record: RawRecord, bases: Bases, target: Target): boolean {
  const { frame, place, out } = target
  const given = record as Readonly<{ n?: string; u?: string; s?: number; t?: number; ut?: number }>
  const name = given.n ?? ''
  const channel = isName(bases.name + name) ? channelOf(bases.name, name, target.local) : undefined
  const moment = momentOf(bases.time + (given.t ?? 0), frame.receivedAt)
  if (channel === undefined || moment === undefined) {
    if (channel === undefined) out.refuse(nameProblem(bases.name + name), `${place}.n`)
    else out.refuse('the time is out of range', `${place}.t`)
    return true
  }
  const { observedAt, timeSource } = moment
  const put = (field: string, value: Reading['value'], { unitCode, unitText }: Unit): boolean => {
    const { device } = channel
    const updateIntervalSeconds = given.ut
    return out.add(
      { device, field, value, unitCode, unitText, observedAt, timeSource, updateIntervalSeconds },
      place,
    )
  }

  const value = valueIn(record, bases)
  const unit = typeof value === 'number' ? (given.u ?? bases.unit) : given.u
  if (value === undefined)
    return put(channel.field, sumOf(given.s, bases), timesSecond(given.u ?? bases.unit))
  if (!put(channel.field, value, senmlUnit(unit))) return false
  return given.s === undefined || put(`${channel.field}.sum`, sumOf(given.s, bases), timesSecond(unit))
}

function contentProblem(record: RawRecord, bases: Bases): Problem | undefined {
  const { v, vs, vb, vd, s } = record
  const values =
    Number(v !== undefined) + Number(vs !== undefined) + Number(vb !== undefined) + Number(vd !== undefined)
  if (values > 1) return { label: 'v', reason: 'a record may have only one value' }
  if (values === 0 && s === undefined && bases.sum === undefined)
    return { label: 'v', reason: 'a record must have a value or a sum' }
  if (vd !== undefined && !base64url.test(vd as string))
    return { label: 'vd', reason: 'vd must be base64url without padding' }
  if (record['ut'] !== undefined && (record['ut'] as number) < 0)
    return { label: 'ut', reason: 'an update time must not be negative' }
  return undefined
}

function nameProblem(name: string): string {
  if (name === '') return 'a record must have a name or a base name'
  return isName(name)
    ? 'the name does not identify a device'
    : 'a name may contain only letters, digits and - : . / _'
}

/** The sum of time and base time as an instant; undefined if it is out of range. */
function momentOf(seconds: number, receivedAt: number): Moment | undefined {
  if (seconds === 0) return { timeSource: 'gateway' }
  const relative = seconds < absoluteTimeMin
  const observedAt = Math.round(seconds * 1000) + (relative ? receivedAt : 0)
  if (!Number.isSafeInteger(observedAt)) return undefined
  return { observedAt, timeSource: relative ? 'gateway' : 'device' }
}

function valueIn(record: RawRecord, bases: Bases): number | string | boolean | undefined {
  const value = record['v'] as number | undefined
  if (value !== undefined) return bases.value === 0 ? value : exactDecimal(bases.value + value)
  return (record['vs'] ?? record['vb'] ?? record['vd']) as string | boolean | undefined
}

const sumOf = (sum: number | undefined, bases: Bases): number =>
  bases.sum === undefined ? sum! : exactDecimal(bases.sum + (sum ?? 0))

function table(types: Readonly<Record<string, MemberType>>): ReadonlyMap<string, MemberType> {
  return new Map(Object.entries(types))
}
