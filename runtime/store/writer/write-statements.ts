/**
 * The rows that the main thread sends to the writer: named statements with their parameters. This register
 * holds every write statement of the product. The writer prepares each at first use; the main thread never
 * writes itself.
 */

import type { RowOf } from '#store/chunks/sql-value.ts'
import { entityWrites } from '#store/entities/entity-rows.ts'
import { historyEditWrites } from '#store/history/history-edits.ts'
import { historyWrites } from '#store/history/history-rows.ts'
import { retentionWrites } from '#store/history/oldest-parts.ts'
import { rollUpWrites } from '#store/history/roll-ups.ts'
import { deliveryWrites } from '#store/tables/delivery-rows.ts'
import { downwardWrites } from '#store/tables/downward-notes.ts'
import { sessionWrites } from '#store/tables/mqtt-rows.ts'
import { passedSubscriptionWrites } from '#store/tables/passed-subscription-rows.ts'
import { recordWrites } from '#store/tables/records.ts'
import { contextSourceWrites } from '#store/tables/source-rows.ts'
import { uplinkWrites } from '#store/tables/uplink-states.ts'

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

/** A row to write: statement name and its positional parameters. */
export type WriteRow = RowOf<typeof writeStatements>
