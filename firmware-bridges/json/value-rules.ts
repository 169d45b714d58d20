/**
 * Rules for values: words that represent missing values, texts and booleans that are mapped to other values,
 * and the treatment of unmapped ones. Each value is accepted, skipped and counted, or rejected with a reason.
 */
import { isNoValue } from '#contract'

export type ReadingScalar = number | boolean | string

export interface ValueRules {
  /** By the value as text; null skips it. */
  readonly values: ReadonlyMap<string, ReadingScalar | null>
  /** Treatment of texts and booleans that `values` does not contain. */
  readonly others: 'take' | 'skip' | 'refuse'
}

export const othersChoices: readonly ValueRules['others'][] = ['take', 'skip', 'refuse']

export type ValueVerdict =
  | { readonly value: ReadingScalar; readonly reason?: undefined }
  /** Skipped if there is no reason. */
  | { readonly value?: undefined; readonly reason: string | undefined }

export const skipped: ValueVerdict = Object.freeze({ reason: undefined })

/** States that devices write as words, in any letter case. */
const stateWords: ReadonlyMap<string, boolean> = new Map([
  ['on', true],
  ['off', false],
  ['online', true],
  ['offline', false],
  ['true', true],
  ['false', false],
])

/** `mapsStateWords` applies the table of state words to values without a rule. */
export function judgeValue(found: ReadingScalar, rules: ValueRules, mapsStateWords: boolean): ValueVerdict {
  const mapped = rules.values.get(String(found))
  if (mapped !== undefined) return mapped === null ? skipped : { value: mapped }
  if (isNoValue(found)) return skipped
  if (typeof found === 'number') return { value: found }
  const state =
    mapsStateWords && typeof found === 'string' && found.length <= 8
      ? stateWords.get(found.trim().toLowerCase())
      : undefined
  if (state !== undefined) return { value: state }
  if (rules.others === 'take') return { value: found }
  if (rules.others === 'skip') return skipped
  return { reason: `${JSON.stringify(found).slice(0, 64)} is not among the declared values` }
}

export const isScalar = (value: unknown): value is ReadingScalar =>
  typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string'

const decimalText = /^\s{0,8}[-+]?(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:e[-+]?\d{1,3})?\s{0,8}$/i

/** Converts numeric text to a number; returns any other value unchanged. */
export const asNumber = (found: ReadingScalar): ReadingScalar =>
  typeof found === 'string' && decimalText.test(found) ? Number(found) : found
