/**
 * This gateway's own broker as the one whose streams are rated. Changes come through the log; the
 * subscriptions show what is watched. Entities that clients send to the callback are written to the broker.
 */
import { createSentEntityWriter } from '#client/requests/client-writes.ts'
import { createOwnSubscriptions, followerEndpoint } from '#client/subscriptions/own-subscriptions.ts'
import type { Host } from '#contract'
import type { OwnStreams } from '#plugins/quality/streams/own-streams.ts'
import { subscriptionIds, watched } from './analyser-watches.ts'
import type { KnownBroker } from './broker-row.ts'
import type { ServedBroker } from './served-broker.ts'
import { createSubscriptionList } from './subscription-list.ts'

export interface OwnServedPorts {
  readonly host: Host<unknown, 'mdr' | 'changes'>
  readonly row: KnownBroker
  readonly own: OwnStreams
}

export function createOwnBroker({ host, row, own }: OwnServedPorts): ServedBroker {
  const { mdr, changes, clock, log, signal, addresses } = host
  const callback = (): string | undefined => addresses()[0] && `${addresses()[0]}/callback`
  const subscriptions = createOwnSubscriptions({
    broker: mdr,
    plugin: 'quality',
    watches: watched,
    idPrefix: subscriptionIds,
    callback,
    ids: () => row.facts().subscriptions ?? {},
    saveIds: (ids) => row.set({ facts: { ...row.facts(), subscriptions: ids } }),
    log,
    signal,
  })

  return Object.freeze({
    port: mdr,
    entityOf: (id) => changes.entity(id)?.entity(),
    exists: (id) => changes.entity(id) !== undefined,
    isReplica(id) {
      const times = changes.entity(id)?.times().attributes ?? {}
      return Object.values(times).some(([, , via]) => via !== undefined)
    },
    async start() {
      await own.start()
      subscriptions.checkSoon()
    },
    receive: createSentEntityWriter(mdr, clock.now),
    saving: own.saving,
    subscriptions: createSubscriptionList({
      broker: mdr,
      row,
      callback,
      endpoint: { notifierInfo: followerEndpoint },
    }),
    status: () => ({
      broker: mdr.address,
      reading: own.progress(),
      position: own.position() ?? null,
      log: changes.position(),
      failures: subscriptions.failures(),
    }),
    complaints: () => [],
    async close() {
      subscriptions.close()
      await own.close()
    },
  } satisfies ServedBroker)
}
