/**
 * One ceiling: value, unit, why it is that number, and what happens beyond it. The table is in limits.ts.
 */

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
