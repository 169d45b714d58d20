/**
 * The ceilings of what goes between this gateway and other brokers downward; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const downwardLimits = {
  downwardTimeoutMs: limit(20_000, 'ms', 'A small request over a slow link', 'tried again after a pause'),
} as const satisfies Record<string, Limit>
