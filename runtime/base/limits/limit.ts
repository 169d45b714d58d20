/**
 * One ceiling: value, unit, why it is that number, and what happens beyond it. The table is in limits.ts.
 *
 * SELVEDGE_LIMITS gives some of them other values, as `name=value` pairs separated by commas. It is for trials, which have
 * no minute to wait for what happens every minute; no gateway at work is run with it.
 */
import { GatewayError } from '#base/register/errors.ts'

export interface Limit {
  readonly value: number
  readonly unit: string
  readonly reason: string
  readonly beyond: string
}

export const limit = (value: number, unit: string, reason: string, beyond: string): Limit => ({
  value,
  unit,
  reason,
  beyond,
})

/** The table with the values of SELVEDGE_LIMITS. Throws `config.invalid` for a name or a number that is none. */
export function underTrial<T extends Record<string, Limit>>(
  table: T,
  text = process.env['SELVEDGE_LIMITS'] ?? '',
): T {
  if (text === '') return table
  const changed: Record<string, Limit> = { ...table }
  for (const pair of text.split(',')) {
    const [, name, value] = /^\s*(\w+)=(\d+)\s*$/.exec(pair) ?? []
    if (name === undefined || !Object.hasOwn(table, name))
      throw new GatewayError('config.invalid', `SELVEDGE_LIMITS: "${pair}" is not name=value of a limit`)
    changed[name] = { ...table[name]!, value: Number(value) }
  }
  return changed as T
}
