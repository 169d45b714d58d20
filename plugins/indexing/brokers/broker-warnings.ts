/**
 * Derives warnings about registered brokers from their rows: NGSILD-Warning values for index responses, and
 * complaints for operators. Pure functions.
 */
import { warningLine } from '#ngsi-ld/values/warning-lines.ts'
import { type BrokerRow, ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import { factsOf } from './followed-broker.ts'

/**
 * NGSILD-Warning values: entries of unreachable brokers are stale; those of brokers being read may be
 * missing.
 */
export function warningsOf(rows: readonly BrokerRow[]): string[] {
  return rows.flatMap((row) => {
    if (row.b === ownBroker || (row.state === 'following' && !isAged(row))) return []
    const { heardAt, lastCrawl } = factsOf(row)
    if (row.state === 'loading' || row.state === 'new')
      return lastCrawl === undefined
        ? [warning(111, row.host, `${row.host} is being read; some of its entities are missing`)]
        : []
    const since = heardAt === undefined ? 'it was never read' : `its entries are as of ${heardAt}`
    const state = row.state === 'following' ? 'silent' : row.state
    return [warning(110, row.host, `${row.host} is ${state}: ${reasonOf(row)}; ${since}`)]
  })
}

/** NGSILD-Warning values: for registered brokers, last-seen times are updated by full reads only. */
export function seenWarningsOf(rows: readonly BrokerRow[]): string[] {
  return rows.flatMap((row) => {
    const { lastCrawl } = factsOf(row)
    if (row.b === ownBroker || lastCrawl === undefined) return []
    return [warning(110, row.host, `last-seen times of streams of ${row.host} are as of ${lastCrawl.began}`)]
  })
}

/** Complaints for operators. */
export function complaintsOf(rows: readonly BrokerRow[]): string[] {
  return rows.flatMap((row) => {
    const reason = reasonOf(row)
    if (reason === undefined) return []
    return [row.state === 'following' ? `${row.host}: ${reason}` : `${row.host} is ${row.state}: ${reason}`]
  })
}

/** Whether the broker may have newer versions of its entries. */
export const isAged = (row: BrokerRow): boolean =>
  row.state === 'down' ||
  row.state === 'refused' ||
  (row.state === 'following' && factsOf(row).silence?.isAged === true)

/** Why a broker is not followed normally. Undefined if it is. */
export function reasonOf(row: BrokerRow): string | undefined {
  const { reason, silence } = factsOf(row)
  if (row.state === 'following') return silence?.reason
  return row.state === 'down' || row.state === 'refused' ? (reason ?? 'unknown') : undefined
}

const warning = (code: number, address: string, text: string): string =>
  warningLine(code, new URL(address).host, text)
