/**
 * Subscriptions that were forwarded to context sources, by their id there. They are in memory, since every
 * notification of a source looks one up, and on disk, since they must be deleted at the source. Other parts
 * decide when to send requests.
 */

import type { Door } from '#broker/commit/door.ts'
import { createStaged } from '#broker/commit/staged-values.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import type { PassedSubscriptions } from '#store/tables/passed-subscription-rows.ts'

/**
 * coming: to be created at the source; there: created; refused: rejected by the source; leaving: to be
 * deleted there.
 */
export type ForwardedState = 'coming' | 'there' | 'refused' | 'leaving'

export interface ForwardedSubscription {
  /** Its id at the source. */
  readonly id: string
  /** The id of the subscription here. */
  readonly subscription: string
  /** The source as registered then. */
  readonly registration: Registration
  /** Secret in the notification path; a sender that knows it is accepted as the source. */
  readonly token: string
  /** Fingerprint of the request, to detect changes. */
  readonly print: string
  /** The Via header of the request that created the subscription here. */
  readonly via?: string | undefined
  readonly state: ForwardedState
  /** Since when it is to be deleted at the source, ms. */
  readonly leavingAt?: number | undefined
}

/** The ids of a subscription here and of a source. */
export interface ForwardingPair {
  readonly subscription: string
  readonly registration: string
}

export function createForwardedSubscriptions({ rows, door }: { rows: PassedSubscriptions; door: Door }) {
  const all = createStaged<ForwardedSubscription>('forwarded subscriptions')
  const byToken = new Map<string, string>()
  const byPair = new Map<string, Set<string>>()
  const keyOf = ({ subscription, registration }: ForwardingPair): string => `${subscription} ${registration}`
  const pairOf = ({ subscription, registration }: ForwardedSubscription): string =>
    keyOf({ subscription, registration: registration.id })
  function index(one: ForwardedSubscription): void {
    byToken.set(one.token, one.id)
    byPair.set(pairOf(one), (byPair.get(pairOf(one)) ?? new Set()).add(one.id))
  }
  function forget(one: ForwardedSubscription | undefined): void {
    if (one === undefined) return
    byToken.delete(one.token)
    const ids = byPair.get(pairOf(one))
    ids?.delete(one.id)
    if (ids?.size === 0) byPair.delete(pairOf(one))
  }
  for (const { id, doc } of rows.all()) {
    const one = JSON.parse(doc) as ForwardedSubscription
    all.load(id, one)
    index(one)
  }
  return Object.freeze({
    all: () => all.stored.values(),
    count: () => all.stored.size,
    get: (id: string) => all.stored.get(id),
    byToken: (token: string) => all.stored.get(byToken.get(token) ?? ''),
    ofPair: (pair: ForwardingPair) =>
      [...(byPair.get(keyOf(pair)) ?? [])].flatMap((id) => all.stored.get(id) ?? []),
    put: (one: ForwardedSubscription) =>
      door.commit((stage) => {
        stage.write('passed_subscription.put', one.id, JSON.stringify(one))
        all.put(stage, one.id, one, () => index(one))
      }),
    delete: (id: string) =>
      door.commit((stage) => {
        const one = all.find(stage, id)
        stage.write('passed_subscription.delete', id)
        all.put(stage, id, undefined, () => forget(one))
      }),
  })
}

export type ForwardedSubscriptions = ReturnType<typeof createForwardedSubscriptions>
