/**
 * Rules for values: which words mean no value, which texts and booleans stand for another value, and what becomes of
 * those that no rule names. A value is taken, skipped and counted, or refused with a reason.
 */
import { isNoValue } from '#contract'

export type Scalar = number | boolean | string

export interface ValueRules {
  /** By the value as text; null skips it. */
  readonly values: ReadonlyMap<string, Scalar | null>
  /** What happens to texts and booleans that `values` does not name. */
  readonly others: 'take' | 'skip' | 'refuse'
}

export const othersChoices: readonly ValueRules['others'][] = ['take', 'skip', 'refuse']

export type Verdict =
  | { readonly value: Scalar; readonly reason?: undefined }
  /** Without a reason it is skipped. */
  | { readonly value?: undefined; readonly reason: string | undefined }

export const skipped: Verdict = Object.freeze({ reason: undefined })

/** States that devices write as words; the case does not count. */
const stateWords: ReadonlyMap<string, boolean> = new Map([
  ['on', true],
  ['off', false],
  ['online', true],
  ['offline', false],
  ['true', true],
  ['false', false],
])

/** `knowsWords` applies the table of states where no rule names the value. */
export function judgeValue(found: Scalar, rules: ValueRules, knowsWords: boolean): Verdict {
  const mapped = rules.values.get(String(found))
  if (mapped !== undefined) return mapped === null ? skipped : { value: mapped }
  if (isNoValue(found)) return skipped
  if (typeof found === 'number') return { value: found }
  const state =
    knowsWords && typeof found === 'string' && found.length <= 8
      ? stateWords.get(found.trim().toLowerCase())
      : undefined
  if (state !== undefined) return { value: state }
  if (rules.others === 'take') return { value: found }
  if (rules.others === 'skip') return skipped
  return { reason: `${JSON.stringify(found).slice(0, 64)} is not among the declared values` }
}

export const isScalar = (value: unknown): value is Scalar =>
  typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string'

const decimalText = /^\s{0,8}[-+]?(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:e[-+]?\d{1,3})?\s{0,8}$/i

/** A text that is a number as that number, anything else as it is. */
export const asNumber = (found: Scalar): Scalar =>
  typeof found === 'string' && decimalText.test(found) ? Number(found) : found
