/**
 * This gateway's own broker as the one whose streams are rated. Changes come through the log; the
 * subscriptions show what is watched. Entities that clients send to the callback are written to the broker.
 */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { createOwnSubscriptions, followerEndpoint } from '#client/own-subscriptions.ts'
import { bodyItems, createItemReader } from '#client/received-entities.ts'
import type { Host } from '#contract'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
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
  const read = createItemReader()
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
  const check = (): void =>
    void subscriptions.check().catch((error: unknown) => {
      log.error('plugin.failed', { plugin: 'quality', during: 'checking subscriptions', error })
    })
  const timer = setInterval(check, limits.ownSubscriptionsCheckMs.value).unref()

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
      check()
    },
    async receive(body, secret) {
      // Notifications of this broker come through the log, so none has a secret.
      if (secret !== undefined)
        throw new GatewayError('http.unauthorized', 'no subscription has this callback')
      const { items, context } = bodyItems(body)
      const { entities, unreadable } = read(items, clock.now(), context)
      if (entities.length === 0) throw badRequestData(unreadable[0] ?? 'has no entity', 'body')
      const answer = await mdr.exchange({
        method: 'POST',
        path: '/ngsi-ld/v1/entityOperations/upsert?options=update',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(entities),
      })
      if ('failure' in answer) throw new GatewayError('peer.unavailable', answer.reason)
      if (answer.status >= 300 || answer.status === 207)
        throw badRequestData(answer.text.slice(0, 300), 'body')
    },
    save: own.save,
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
      clearInterval(timer)
      await own.close()
    },
  } satisfies ServedBroker)
}
