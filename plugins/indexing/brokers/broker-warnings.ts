/**
 * What has to be known of registered brokers: what goes with answers of the index as warnings, and what an operator should look at.
 * Pure: it follows from their rows.
 */
import { warningLine } from '#ngsi-ld/values/warning-lines.ts'
import { type BrokerRow, ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import { factsOf } from './followed-broker.ts'

/** Values of NGSILD-Warning: entries of brokers that are away are aged, those of brokers that are being read may be missing. */
export function warningsOf(rows: readonly BrokerRow[]): string[] {
  return rows.flatMap((row) => {
    if (row.b === ownBroker || (row.state === 'following' && !isAged(row))) return []
    const { heardAt, lastCrawl } = factsOf(row)
    if (row.state === 'loading' || row.state === 'new')
      return lastCrawl === undefined
        ? [warning(111, row.host, `${row.host} is being read; some of it is missing`)]
        : []
    const since = heardAt === undefined ? 'it was never read' : `what is known of it is of ${heardAt}`
    const state = row.state === 'following' ? 'silent' : row.state
    return [warning(110, row.host, `${row.host} is ${state}: ${reasonOf(row)}; ${since}`)]
  })
}

/** Values of NGSILD-Warning: of registered brokers, when streams were last seen is told by readings alone. */
export function seenWarningsOf(rows: readonly BrokerRow[]): string[] {
  return rows.flatMap((row) => {
    const { lastCrawl } = factsOf(row)
    if (row.b === ownBroker || lastCrawl === undefined) return []
    return [warning(110, row.host, `when streams of ${row.host} were last seen is of ${lastCrawl.began}`)]
  })
}

/** What an operator should look at. */
export function complaintsOf(rows: readonly BrokerRow[]): string[] {
  return rows.flatMap((row) => {
    const reason = reasonOf(row)
    if (reason === undefined) return []
    return [row.state === 'following' ? `${row.host}: ${reason}` : `${row.host} is ${row.state}: ${reason}`]
  })
}

/** Whether entries of a broker may be older than what it has. */
export const isAged = (row: BrokerRow): boolean =>
  row.state === 'down' ||
  row.state === 'refused' ||
  (row.state === 'following' && factsOf(row).silence?.isAged === true)

/** What is wrong with a broker; undefined where nothing is. */
export function reasonOf(row: BrokerRow): string | undefined {
  const { reason, silence } = factsOf(row)
  if (row.state === 'following') return silence?.reason
  return row.state === 'down' || row.state === 'refused' ? (reason ?? 'unknown') : undefined
}

const warning = (code: number, address: string, text: string): string =>
  warningLine(code, new URL(address).host, text)
