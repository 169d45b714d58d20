/**
 * Collects the readings and problems of one frame. It rejects values that can never be an observation:
 * numbers that are not finite, words for "no value", names that cannot become ids. It is bounded: a frame
 * with too many readings yields none, and after the first problems further ones are only counted.
 */
import { limits } from '#base/limits/limits.ts'
import type { Decoded, DecodeProblem, Json, Reading } from './pipeline.ts'

export interface Decoding {
  /** Adds a reading, or a problem at `place`. Returns false once the frame has too many readings. */
  add(reading: Reading, place: string): boolean
  /** Records why a part of the frame yields no reading. */
  refuse(reason: string, place?: string): void
  /** Counts a value that a rule skips. */
  skip(): void
  end(): Decoded
}

/** A frame with more readings yields none. */
export const readingsMax = limits.readingsPerFrameMax.value
const problemsMax = limits.problemsPerFrameMax.value
const nameMax = limits.deviceNameCharactersMax.value

export function createDecoding(): Decoding {
  const readings: Reading[] = []
  const problems: DecodeProblem[] = []
  let full = false
  let omitted = 0
  let skipped = 0

  const refuse = (reason: string, place?: string): void => {
    if (problems.length === problemsMax) omitted++
    else problems.push(place === undefined ? { reason } : { reason, field: place })
  }

  return {
    refuse,
    skip() {
      skipped++
    },
    add(reading, place) {
      const reason = objectionTo(reading)
      if (reason !== undefined) refuse(reason, place)
      else if (readings.length < readingsMax) readings.push(reading)
      else full = true
      return !full
    },
    end() {
      if (full) return undecodable(`more than ${readingsMax} readings in one frame`)
      if (omitted > 0) problems.push({ reason: `${omitted} more problems` })
      return skipped > 0 ? { readings, problems, skipped } : { readings, problems }
    },
  }
}

/** The result for a frame without readings, with the reason. */
export function undecodable(reason: string, place?: string): Decoded {
  return { readings: [], problems: [place === undefined ? { reason } : { reason, field: place }] }
}

/** Why a reading cannot become an observation; undefined if it can. */
export function objectionTo({ device, field, value }: Reading): string | undefined {
  return objectionToName('device', device) ?? objectionToName('field', field) ?? objectionToValue(value)
}

function objectionToName(part: string, name: string): string | undefined {
  if (name.length === 0) return `the ${part} has no name`
  if (name.length > nameMax) return `the name of the ${part} is longer than ${nameMax} characters`
  return name.isWellFormed() ? undefined : `the name of the ${part} is not valid Unicode`
}

/** Words that device drivers write for a missing value; case-insensitive. */
const noValue = /^(?:[-+]?(?:nan|inf|infinity)|null|undefined|unavailable|unknown|n\/a)$/i
const noValueCharactersMax = 16

/** Whether a value stands for a missing value. */
export function isNoValue(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isFinite(value)
  return value === null || (typeof value === 'string' && isNoValueText(value))
}

const isNoValueText = (text: string): boolean =>
  text.length <= noValueCharactersMax && noValue.test(text.trim())

function objectionToValue(value: Json): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'the number is not finite'
  if (value === null) return 'null is not a value'
  if (typeof value !== 'string') return undefined
  if (isNoValueText(value)) return `"${value}" means no value`
  return value.isWellFormed() ? undefined : 'the text is not valid Unicode'
}
