/**
 * Where a bridge puts what it finds in one frame. It refuses what can never be an observation, whichever bridge
 * decodes: values that are not finite, words for "no value", names that cannot become ids. It is bounded: a frame
 * with too many readings gives none, and of many problems the first are told and the others counted.
 */
import { limits } from '#base/limits/limits.ts'
import type { Decoded, DecodeProblem, Json, Reading } from './pipeline.ts'

export interface Decoding {
  /** Takes a reading, or notes at `place` why not. False once the frame is full: reading on is pointless. */
  add(reading: Reading, place: string): boolean
  /** Notes why a part of the frame gives no reading. */
  refuse(reason: string, place?: string): void
  /** Counts a value that is left out by rule. */
  skip(): void
  end(): Decoded
}

/** More readings in one frame are none. */
export const readingsMax = limits.readingsPerFrameMax.value
const problemsMax = limits.problemsPerFrameMax.value
const nameMax = limits.deviceNameCharactersMax.value

export function createDecoding(): Decoding {
  const readings: Reading[] = []
  const problems: DecodeProblem[] = []
  let full = false
  let untold = 0
  let skipped = 0

  const refuse = (reason: string, place?: string): void => {
    if (problems.length === problemsMax) untold++
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
      if (untold > 0) problems.push({ reason: `${untold} more problems` })
      return skipped > 0 ? { readings, problems, skipped } : { readings, problems }
    },
  }
}

/** A frame that gives nothing, and why. */
export function undecodable(reason: string, place?: string): Decoded {
  return { readings: [], problems: [place === undefined ? { reason } : { reason, field: place }] }
}

/** Why a reading can be no observation; undefined when it can. */
export function objectionTo({ device, field, value }: Reading): string | undefined {
  return objectionToName('device', device) ?? objectionToName('field', field) ?? objectionToValue(value)
}

function objectionToName(part: string, name: string): string | undefined {
  if (name.length === 0) return `the ${part} has no name`
  if (name.length > nameMax) return `the name of the ${part} is longer than ${nameMax} characters`
  return name.isWellFormed() ? undefined : `the name of the ${part} is not valid Unicode`
}

/** What drivers write where they have no value (edge of many firmwares; case does not count). */
const noValue = /^(?:[-+]?(?:nan|inf|infinity)|null|undefined|unavailable|unknown|n\/a)$/i
const noValueCharactersMax = 16

/** Whether a value is how devices write that they have none. */
export function isNoValue(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isFinite(value)
  return value === null || (typeof value === 'string' && isNoValueText(value))
}

const isNoValueText = (text: string): boolean =>
  text.length <= noValueCharactersMax && noValue.test(text.trim())

function objectionToValue(value: Json): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'the number is not finite'
  if (value === null) return 'null is no value'
  if (typeof value !== 'string') return undefined
  if (isNoValueText(value)) return `"${value}" means no value`
  return value.isWellFormed() ? undefined : 'the text is not valid Unicode'
}
