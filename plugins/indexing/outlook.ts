/**
 * What has to be known of registered brokers: what goes with answers of the index as warnings, and what an operator should look at.
 * Pure: it follows from their rows.
 */
import { type BrokerRow, ownBroker } from './brokers.ts'
import { factsOf } from './remote.ts'

/** Values of NGSILD-Warning: entries of brokers that are away are aged, those of brokers that are being read may be missing. */
export function warningsOf(rows: readonly BrokerRow[]): string[] {
  return rows.flatMap((row) => {
    if (row.b === ownBroker || row.state === 'following') return []
    const { reason, heardAt, lastCrawl } = factsOf(row)
    if (row.state === 'loading' || row.state === 'new')
      return lastCrawl === undefined
        ? [warning(111, row.host, `${row.host} is being read; some of it is missing`)]
        : []
    const since = heardAt === undefined ? 'it was never read' : `what is known of it is of ${heardAt}`
    return [warning(110, row.host, `${row.host} is ${row.state}: ${reason ?? 'unknown'}; ${since}`)]
  })
}

/** What an operator should look at. */
export function complaintsOf(rows: readonly BrokerRow[]): string[] {
  return rows.flatMap((row) =>
    row.state === 'down' || row.state === 'refused'
      ? [`${row.host} is ${row.state}: ${factsOf(row).reason ?? 'unknown'}`]
      : factsOf(row).undeliveredAt === undefined
        ? []
        : [`${row.host} could not notify this gateway: see indexing.callbackUrl`],
  )
}

const warning = (code: number, address: string, text: string): string =>
  `${code} ${new URL(address).host} "${text.replaceAll(/[^\x20-\x7e]|["\\]/g, ' ')}"`
