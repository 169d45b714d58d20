/**
 * Opens the broker that the settings name: this gateway's own, whose changes come through the log, or a
 * remote one. The subscriptions at the own broker only show what is watched.
 */
import { type BrokerSettings, chosenBroker, mdr, unsubscribeFormer } from '#client/requests/chosen-broker.ts'
import { createSentEntityWriter } from '#client/requests/client-writes.ts'
import { createOwnSubscriptions } from '#client/subscriptions/own-subscriptions.ts'
import type { Host } from '#contract'
import { createLogFollower, type LogFollowerPorts } from './log-follower.ts'
import { createRemoteFollower } from './remote-follower.ts'
import type { WatchedBroker } from './watched-broker.ts'
import { openSubscriptionFacts, type SubscriptionFacts } from './watched-broker-statements.ts'
import { subscriptionIds, watched } from './watches.ts'

export interface WatchedBrokerPorts
  extends Pick<LogFollowerPorts, 'streams' | 'watching' | 'saving' | 'table' | 'restored' | 'missed'> {
  readonly host: Host<BrokerSettings, 'mdr' | 'changes' | 'database' | 'remote'>
}

export function openWatchedBroker(ports: WatchedBrokerPorts): WatchedBroker {
  const { host } = ports
  const chosen = chosenBroker(host)
  const facts = openSubscriptionFacts(host.database, chosen)
  if (facts.former !== undefined) void unsubscribeFormer(facts.former, host)
  return chosen === mdr ? openOwnBroker(ports, facts) : createRemoteFollower({ ...ports, facts })
}

function openOwnBroker({ host, ...ports }: WatchedBrokerPorts, row: SubscriptionFacts): WatchedBroker {
  const { mdr: broker, changes, clock, log, signal, addresses } = host
  const startedAt = clock.now() - performance.now()
  const follower = createLogFollower({ ...ports, startedAt, changes, clock, log, signal })
  const subscriptions = createOwnSubscriptions({
    broker,
    plugin: 'faults',
    watches: watched,
    idPrefix: subscriptionIds,
    callback: (purpose) => addresses()[0] && `${addresses()[0]}/monitoring/callback/${purpose}`,
    ids: row.ids,
    saveIds: row.saveIds,
    log,
    signal,
  })

  return Object.freeze({
    port: broker,
    entityOf: (id) => changes.entity(id)?.entity(),
    cursor: follower.cursor,
    isBehind: follower.isBehind,
    async start() {
      await follower.start()
      subscriptions.checkSoon()
    },
    status: () => ({
      broker: broker.address,
      isReading: follower.isReading(),
      position: follower.cursor()?.position ?? null,
      log: changes.position(),
      failures: subscriptions.failures(),
    }),
    receive: createSentEntityWriter(broker, clock.now),
    complaints: () => [],
    async close() {
      subscriptions.close()
      await follower.close()
    },
  } satisfies WatchedBroker)
}
