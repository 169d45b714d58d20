/** Opens the broker that the settings name, and ends the subscriptions at the one before. */
import { limits } from '#base/limits/limits.ts'
import type { BrokerPort, Host } from '#contract'
import type { Downtime } from '#plugins/quality/measures/stream-record.ts'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'
import { createOwnStreams } from '#plugins/quality/streams/own-streams.ts'
import type { StreamStatements } from '#plugins/quality/streams/stream-statements.ts'
import { type KnownBroker, openBrokerRow } from './broker-row.ts'
import { createOwnBroker } from './own-broker.ts'
import { createRemoteBroker, type RemoteBrokerSettings } from './remote-broker.ts'
import type { ServedBroker } from './served-broker.ts'

export interface ServedBrokerPorts {
  readonly host: Host<RemoteBrokerSettings, 'mdr' | 'changes' | 'database' | 'remote'>
  readonly streams: KnownStreams
  readonly table: StreamStatements
  /** Called in the transaction that saves the records. */
  readonly saved: () => void
  readonly downtimes: Downtime[]
  readonly upSince: number
}

const mdr = 'mdr'

export function openServedBroker(ports: ServedBrokerPorts): ServedBroker {
  const { host, streams, table, saved, downtimes, upSince } = ports
  const { broker } = host.settings
  const isOwn = broker === mdr || host.isOwn(broker)
  const row = openBrokerRow(host.database, isOwn ? mdr : broker)
  if (row.former !== undefined) void unsubscribe(row.former, host)
  if (!isOwn) return createRemoteBroker(ports, row)
  const own = createOwnStreams({
    ...host,
    streams,
    table,
    saved,
    downtimes,
    startedAt: upSince - performance.now(),
  })
  return createOwnBroker({ host, row, own })
}

/** Tries once: a broker that is unreachable keeps subscriptions whose notifications are rejected. */
async function unsubscribe(
  { address, subscriptions }: NonNullable<KnownBroker['former']>,
  host: ServedBrokerPorts['host'],
): Promise<void> {
  const remote = address === mdr ? undefined : host.remote({ url: address, isConfigured: true })
  const port: BrokerPort = remote ?? host.mdr
  for (const id of subscriptions)
    await port.exchange({
      method: 'DELETE',
      path: `/ngsi-ld/v1/subscriptions/${encodeURIComponent(id)}`,
      timeoutMs: limits.clientRequestMs.value,
    })
  remote?.close()
}
