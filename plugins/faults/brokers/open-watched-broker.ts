/**
 * Opens the broker that the settings name: this gateway's own, whose changes come through the log, or a
 * remote one. The subscriptions at the own broker only show what is watched.
 */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { createOwnSubscriptions } from '#client/own-subscriptions.ts'
import type { Host } from '#contract'
import { createLogFollower, type LogFollowerPorts } from './log-follower.ts'
import { createRemoteFollower } from './remote-follower.ts'
import type { BrokerSettings, WatchedBroker } from './watched-broker.ts'
import { openSubscriptionFacts, type SubscriptionFacts } from './watched-broker-statements.ts'
import { subscriptionIds, watched } from './watches.ts'

export interface WatchedBrokerPorts
  extends Pick<LogFollowerPorts, 'streams' | 'watching' | 'saving' | 'table' | 'restored'> {
  readonly host: Host<BrokerSettings, 'mdr' | 'changes' | 'database' | 'remote'>
}

const own = 'mdr'

export function openWatchedBroker(ports: WatchedBrokerPorts): WatchedBroker {
  const { host } = ports
  const { broker } = host.settings
  const isOwn = broker === own || host.isOwn(broker)
  const facts = openSubscriptionFacts(host.database, isOwn ? own : broker)
  if (facts.former !== undefined) void unsubscribe(facts.former, host)
  return isOwn ? openOwnBroker(ports, facts) : createRemoteFollower({ ...ports, facts })
}

/** Tries once: a broker that is unreachable keeps subscriptions whose notifications are rejected. */
async function unsubscribe(
  { address, ids }: NonNullable<SubscriptionFacts['former']>,
  host: WatchedBrokerPorts['host'],
): Promise<void> {
  const remote = address === own ? undefined : host.remote({ url: address, isConfigured: true })
  for (const id of ids)
    await (remote ?? host.mdr).exchange({
      method: 'DELETE',
      path: `/ngsi-ld/v1/subscriptions/${encodeURIComponent(id)}`,
      timeoutMs: limits.clientRequestMs.value,
    })
  remote?.close()
}

function openOwnBroker({ host, ...ports }: WatchedBrokerPorts, row: SubscriptionFacts): WatchedBroker {
  const { mdr, changes, clock, log, signal, addresses } = host
  const follower = createLogFollower({ ...ports, changes, clock, log, signal })
  const subscriptions = createOwnSubscriptions({
    broker: mdr,
    plugin: 'faults',
    watches: watched,
    idPrefix: subscriptionIds,
    callback: (purpose) => addresses()[0] && `${addresses()[0]}/monitoring/callback/${purpose}`,
    ids: row.ids,
    saveIds: row.saveIds,
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
    cursor: follower.cursor,
    isBehind: () => (follower.cursor()?.position ?? -1) < changes.position(),
    async start() {
      await follower.start()
      check()
    },
    status: () => ({
      broker: mdr.address,
      isReading: follower.isReading(),
      position: follower.cursor()?.position ?? null,
      log: changes.position(),
      failures: subscriptions.failures(),
    }),
    async receive() {
      // Notifications of this broker come through the log, so none has a secret.
      throw new GatewayError('http.unauthorized', 'no subscription has this callback')
    },
    complaints: () => [],
    async close() {
      clearInterval(timer)
      await follower.close()
    },
  } satisfies WatchedBroker)
}
