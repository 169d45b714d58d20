/** Opens the broker that the settings name, and ends the subscriptions at the one before. */
import { type BrokerSettings, chosenBroker, mdr, unsubscribeFormer } from '#client/requests/chosen-broker.ts'
import type { Host } from '#contract'
import type { Downtimes } from '#plugins/quality/streams/downtimes.ts'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'
import { createOwnStreams } from '#plugins/quality/streams/own-streams.ts'
import type { StreamSavingPorts } from '#plugins/quality/streams/stream-saving.ts'
import type { StreamStatements } from '#plugins/quality/streams/stream-statements.ts'
import { openBrokerRow } from './broker-row.ts'
import { createOwnBroker } from './own-broker.ts'
import { createRemoteBroker } from './remote-broker.ts'
import type { ServedBroker } from './served-broker.ts'

export interface ServedBrokerPorts {
  readonly host: Host<BrokerSettings, 'mdr' | 'changes' | 'database' | 'remote'>
  readonly streams: KnownStreams
  readonly table: StreamStatements
  readonly journal: StreamSavingPorts['journal']
  readonly downtimes: Downtimes
  readonly upSince: number
}

export function openServedBroker(ports: ServedBrokerPorts): ServedBroker {
  const { host, streams, table, journal, downtimes } = ports
  const row = openBrokerRow(host.database, chosenBroker(host))
  if (row.former !== undefined) void unsubscribeFormer(row.former, host)
  if (row.address !== mdr) return createRemoteBroker(ports, row)
  const own = createOwnStreams({
    changes: host.changes,
    streams,
    table,
    journal,
    downtimes,
    clock: host.clock,
    log: host.log,
    signal: host.signal,
  })
  return createOwnBroker({ host, row, own })
}
