/**
 * A ceiling: value and unit. The table is in limits.ts. The comment of each entry states its reason and what
 * happens beyond it. Editors show it at each use, and `npm run document` copies it into the reference.
 *
 * SELVEDGE_LIMITS overrides values, as `name=value` pairs separated by commas. It is for tests, which cannot
 * wait a minute for a task that runs every minute. Do not use it in production.
 */
import { GatewayError } from '#base/register/errors.ts'

export interface Limit {
  readonly value: number
  readonly unit: string
}

export const limit = (value: number, unit: string): Limit => ({ value, unit })

/**
 * The table with the values of SELVEDGE_LIMITS. Throws `config.invalid` for an unknown name or a bad number.
 */
export function underTrial<T extends Record<string, Limit>>(
  table: T,
  text = process.env['SELVEDGE_LIMITS'] ?? '',
): T {
  if (text === '') return table
  const changed: Record<string, Limit> = { ...table }
  for (const pair of text.split(',')) {
    const [, name, value] = /^\s*(\w+)=(\d+)\s*$/.exec(pair) ?? []
    if (name === undefined || !Object.hasOwn(table, name))
      throw new GatewayError(
        'config.invalid',
        `SELVEDGE_LIMITS expects name=value with the name of a limit, got "${pair}"`,
      )
    changed[name] = { ...table[name]!, value: Number(value) }
  }
  return changed as T
}
