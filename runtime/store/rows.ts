/**
 * What the main thread sends to the writer: named statements with their parameters. Every write statement of the
 * system is in this register, prepared once by the writer at first use; the main thread never writes itself.
 */

import { contextSourceWrites } from './context-sources.ts'
import { deliveryWrites } from './deliveries.ts'
import { downwardWrites } from './downward-notes.ts'
import { entityWrites } from './entities.ts'
import { historyWrites } from './history.ts'
import { historyEditWrites } from './history-edits.ts'
import { passedSubscriptionWrites } from './passed-subscriptions.ts'
import { recordWrites } from './records.ts'
import { retentionWrites } from './retention.ts'
import { rollUpWrites } from './roll-ups.ts'
import { sessionWrites } from './sessions.ts'
import type { RowOf } from './sql-value.ts'
import { uplinkWrites } from './uplink-states.ts'

export const writeStatements = {
  ...recordWrites,
  ...entityWrites,
  ...historyWrites,
  ...historyEditWrites,
  ...retentionWrites,
  ...rollUpWrites,
  ...deliveryWrites,
  ...sessionWrites,
  ...contextSourceWrites,
  ...passedSubscriptionWrites,
  ...downwardWrites,
  ...uplinkWrites,
} as const satisfies Record<string, string>

export type WriteStatement = keyof typeof writeStatements

/** One row to write: statement name and its positional parameters. */
export type Row = RowOf<typeof writeStatements>
