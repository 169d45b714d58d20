/**
 * Opens this gateway's own broker as the watched one. Changes come through the log; the subscriptions show
 * what is watched.
 */
import { limits } from '#base/limits/limits.ts'
import { createOwnSubscriptions } from '#client/own-subscriptions.ts'
import type { Host } from '#contract'
import { createLogFollower, type LogFollowerPorts } from './log-follower.ts'
import type { WatchedBroker } from './watched-broker.ts'
import { openSubscriptionFacts } from './watched-broker-statements.ts'
import { subscriptionIds, watched } from './watches.ts'

export interface WatchedBrokerPorts
  extends Pick<LogFollowerPorts, 'streams' | 'watching' | 'saving' | 'table' | 'restored'> {
  readonly host: Host<unknown, 'mdr' | 'changes' | 'database'>
}

export function openWatchedBroker({ host, ...ports }: WatchedBrokerPorts): WatchedBroker {
  const { mdr, changes, database, clock, log, signal, addresses } = host
  const own = createLogFollower({ ...ports, changes, clock, log, signal })
  const row = openSubscriptionFacts(database)
  const subscriptions = createOwnSubscriptions({
    broker: mdr,
    plugin: 'faults',
    watches: watched,
    idPrefix: subscriptionIds,
    callback: (purpose) => addresses()[0] && `${addresses()[0]}/monitoring/callback/${purpose}`,
    ...row,
    log,
    signal,
  })
  const check = (): void =>
    void subscriptions.check().catch((error: unknown) => {
      log.error('plugin.failed', { plugin: 'faults', during: 'checking subscriptions', error })
    })
  const timer = setInterval(check, limits.ownSubscriptionsCheckMs.value).unref()

  return Object.freeze({
    port: mdr,
    entityOf: (id) => changes.entity(id)?.entity(),
    cursor: own.cursor,
    isBehind: () => (own.cursor()?.position ?? -1) < changes.position(),
    async start() {
      await own.start()
      check()
    },
    status: () => ({
      broker: mdr.address,
      isReading: own.isReading(),
      position: own.cursor()?.position ?? null,
      log: changes.position(),
      failures: subscriptions.failures(),
    }),
    async close() {
      clearInterval(timer)
      await own.close()
    },
  } satisfies WatchedBroker)
}
