/**
 * A remote broker as the one whose streams are rated, over HTTP alone: subscriptions there, a full read, and
 * notifications to a callback whose path ends with a secret.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import { nonEmpty } from '#client/requests/broker-messages.ts'
import { type BrokerSettings, openRemoteBroker } from '#client/requests/chosen-broker.ts'
import { bodyItems, createItemReader } from '#client/requests/received-entities.ts'
import { createBrokerFollower } from '#client/subscriptions/broker-follower.ts'
import { checkSignedPurpose, signedPurpose } from '#client/subscriptions/callback-signature.ts'
import type { Host } from '#contract'
import { offsetDateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject, own } from '#ngsi-ld/values/json.ts'
import { noQualityYet } from '#plugins/quality/entities/quality-entity.ts'
import type { Downtimes } from '#plugins/quality/streams/downtimes.ts'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'
import type { StreamSavingPorts } from '#plugins/quality/streams/stream-saving.ts'
import type { StreamStatements } from '#plugins/quality/streams/stream-statements.ts'
import { subscriptionIds, watched } from './analyser-watches.ts'
import type { KnownBroker } from './broker-row.ts'
import { createRemoteStore } from './remote-store.ts'
import { createRemoteStreams } from './remote-streams.ts'
import type { ServedBroker } from './served-broker.ts'
import { createSubscriptionList } from './subscription-list.ts'

export interface RemoteBrokerPorts {
  readonly host: Host<BrokerSettings, 'remote' | 'database'>
  readonly streams: KnownStreams
  readonly table: StreamStatements
  readonly journal: StreamSavingPorts['journal']
  readonly downtimes: Downtimes
  readonly upSince: number
}

/** Purpose in the callback of subscriptions that people created. */
const byPeople = 'other'

export function createRemoteBroker(ports: RemoteBrokerPorts, row: KnownBroker): ServedBroker {
  const { host, streams, table, downtimes, upSince } = ports
  const { clock, log, signal, database } = host
  const { port, client } = openRemoteBroker(host)
  const read = createItemReader()
  const store = createRemoteStore({
    database,
    table,
    streams,
    downtimes,
    journal: ports.journal,
    clock,
    log,
  })
  const remote = createRemoteStreams({
    port,
    client,
    streams,
    store,
    parse: read,
    upSince,
    isBehind: () => row.state() !== 'following',
    clock,
    signal,
  })
  const counts = { notifications: 0, unreadable: 0 }
  let waiting = 0
  const base = (): string | undefined =>
    host.settings.callbackUrl ?? (host.addresses()[0] && `${host.addresses()[0]}/callback`)
  const callback = (address: string, purpose: string): string =>
    `${address}/${signedPurpose(row.secret, purpose)}`
  const followed = createBrokerFollower({
    plugin: 'quality',
    watches: watched,
    idPrefix: subscriptionIds,
    client,
    row,
    async read() {
      const trouble = await remote.read()
      if (trouble === undefined) log.info('quality.read', { streams: streams.size(), ...remote.progress() })
      return trouble
    },
    isNotified: () => counts.notifications > 0,
    base,
    callback,
    clock,
    log,
    signal,
  })

  /** Streams as they were saved; what they missed is read when the broker answers. */
  async function restore(): Promise<void> {
    const cursor = table.cursor()
    const stored = table.all()
    streams.restore(stored, table.observations())
    if (cursor !== undefined) downtimes.restore(table.downtimes(), [cursor.committed, table.aliveUntil()])
    downtimes.settle()
    for (const [i, { id }] of stored.entries()) {
      const entity = store.entities.get(id)
      if (entity !== undefined) streams.take(entity)
      if (i % limits.clientReadPage.value === 0) await nextTurn()
    }
  }

  return Object.freeze({
    port,
    entityOf: store.entities.get,
    // Qualities of others are not followed: every link but the placeholder stays.
    exists: (id) => id !== noQualityYet,
    isReplica: () => false,
    async start() {
      await restore()
      followed.start()
    },
    async receive(body, secret) {
      if (secret !== undefined) {
        checkSignedPurpose(row.secret, secret)
        counts.notifications++
      }
      const { items, context } = bodyItems(body)
      const given = read(items, clock.now(), context)
      counts.unreadable += given.unreadable.length
      nonEmpty(given)
      if (waiting >= limits.qualityNotificationsMax.value) throw busy('too many notifications are queued')
      waiting++
      try {
        const trouble = await remote.receive(given, heardAt(body, clock.now()))
        if (trouble !== undefined) throw busy(`${port.address}: ${trouble.reason}`)
      } finally {
        waiting--
      }
      if (secret !== undefined) followed.reportHeard()
    },
    saving: store.saving,
    subscriptions: createSubscriptionList({
      broker: port,
      row,
      callback: () => base() && callback(base()!, byPeople),
      endpoint: {},
    }),
    status: () => ({
      broker: port.address,
      state: row.state(),
      ...row.facts(),
      reading: remote.progress(),
      ...counts,
    }),
    complaints: followed.complaints,
    async close() {
      await followed.close()
      await store.saving.now().catch((error: unknown) => {
        log.error('plugin.failed', { plugin: 'quality', during: 'saving', error })
      })
      port.close()
    },
  } satisfies ServedBroker)
}

const busy = (reason: string): GatewayError => new GatewayError('http.busy', reason, { retryAfterSeconds: 1 })

/** When the broker sent a notification; at the latest now. */
function heardAt(body: unknown, now: number): number {
  const stamp = isObject(body) ? own(body, 'notifiedAt') : undefined
  const at = typeof stamp === 'string' ? offsetDateTimeToMs(stamp) : undefined
  return at === undefined ? now : Math.min(at, now)
}
