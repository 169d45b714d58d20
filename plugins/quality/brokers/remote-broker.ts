/**
 * A remote broker as the one whose streams are rated, over HTTP alone: subscriptions there, a full read, and
 * notifications to a callback whose path ends with a secret.
 */
import { setTimeout as delay, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { createBrokerFollower } from '#client/broker-follower.ts'
import { createBrokerClient } from '#client/broker-requests.ts'
import { checkSignature, signatureOf } from '#client/callback-signature.ts'
import { bodyItems, createItemReader } from '#client/received-entities.ts'
import { isHiddenFrom } from '#client/silence.ts'
import type { Host } from '#contract'
import { offsetDateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject, own } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { noQualityYet } from '#plugins/quality/entities/quality-entity.ts'
import type { Downtime } from '#plugins/quality/measures/stream-record.ts'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'
import type { StreamStatements } from '#plugins/quality/streams/stream-statements.ts'
import { subscriptionIds, watched } from './analyser-watches.ts'
import type { KnownBroker } from './broker-row.ts'
import { createRemoteStore } from './remote-store.ts'
import { createRemoteStreams } from './remote-streams.ts'
import type { ServedBroker } from './served-broker.ts'
import { createSubscriptionList } from './subscription-list.ts'

export interface RemoteBrokerSettings {
  /** mdr, or the address of the broker. */
  readonly broker: string
  readonly tenant?: string | undefined
  readonly tokenFile?: string | undefined
  readonly caFile?: string | undefined
  readonly pagesPerSecond: number
  readonly callbackUrl?: string | undefined
}

export interface RemoteBrokerPorts {
  readonly host: Host<RemoteBrokerSettings, 'remote' | 'database'>
  readonly streams: KnownStreams
  readonly table: StreamStatements
  /** Called in the transaction that saves the records. */
  readonly saved: () => void
  readonly downtimes: Downtime[]
  readonly upSince: number
}

/** Purpose in the callback of subscriptions that people created. */
const byPeople = 'other'

export function createRemoteBroker(ports: RemoteBrokerPorts, row: KnownBroker): ServedBroker {
  const { host, streams, table, downtimes, upSince } = ports
  const { clock, log, signal, database } = host
  const { broker, tenant, tokenFile, caFile, pagesPerSecond, callbackUrl } = host.settings
  const port = host.remote({ url: broker, tenant, tokenFile, caFile, isConfigured: true })
  const paceMs = 1000 / pagesPerSecond
  const client = createBrokerClient({ port, signal, monotonic: clock.monotonic, paceMs })
  const read = createItemReader()
  const store = createRemoteStore({
    database,
    table,
    unsaved: streams.takeUnsaved,
    downtimes,
    saved: ports.saved,
    now: clock.now,
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
    callbackUrl ?? (host.addresses()[0] && `${host.addresses()[0]}/callback`)
  const callback = (purpose: string): string | undefined =>
    base() && `${base()}/${purpose}.${signatureOf(row.secret, purpose)}`
  const reportError =
    (during: string) =>
    (error: unknown): void =>
      log.error('plugin.failed', { plugin: 'quality', during, error })
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
    reportError,
    callback,
    notifying: () => ({ base: base() ?? '', isHidden: isHiddenFrom(port.address, base() ?? '') }),
    clock,
    log,
    signal,
  })

  /** Streams as they were saved; what they missed is read when the broker answers. */
  async function restore(): Promise<void> {
    const cursor = table.cursor()
    const stored = table.all()
    streams.restore(stored, table.observations())
    downtimes.push(...table.downtimes())
    if (cursor !== undefined && cursor.committed < upSince) {
      downtimes.push({ from: cursor.committed, to: upSince })
      if (downtimes.length > limits.qualityDowntimesMax.value) downtimes.shift()
    }
    for (const [i, { id }] of stored.entries()) {
      const entity = store.entities.get(id)
      if (entity !== undefined) streams.take(entity)
      if (i % limits.qualityReadPage.value === 0) await yieldToEventLoop()
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
      while (base() === undefined && !signal.aborted)
        await delay(limits.indexStartMs.value, undefined, { ref: false })
      followed.start()
    },
    async receive(body, secret) {
      if (secret !== undefined) {
        const [purpose = '', sign = ''] = secret.split('.')
        checkSignature(sign, signatureOf(row.secret, purpose))
        counts.notifications++
      }
      const { items, context } = bodyItems(body)
      const given = read(items, clock.now(), context)
      counts.unreadable += given.unreadable.length
      if (given.entities.length === 0 && given.deleted.length === 0)
        throw badRequestData(given.unreadable[0] ?? 'has no entity', 'data')
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
    save: store.saveNow,
    subscriptions: createSubscriptionList({
      broker: port,
      row,
      callback: () => callback(byPeople),
      endpoint: {},
    }),
    status: () => ({
      broker: port.address,
      state: row.state(),
      ...row.facts(),
      reading: remote.progress(),
      ...counts,
    }),
    complaints: () => {
      const { reason, silence } = row.facts()
      const state = row.state()
      if (state === 'down' || state === 'refused') return [`${port.address} is ${state}: ${reason ?? ''}`]
      return silence === undefined ? [] : [`${port.address}: ${silence.reason}`]
    },
    async close() {
      await followed.close()
      await store.save().catch(reportError('saving'))
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
