/**
 * What a subscriber of the hub sees while a gateway feeds it: of every attribute instance the times of its current values,
 * which may not go back while it is there. Each attribute has a subscription of its own, since only what changed is told as
 * it was then. Repeats of a notification, which a hub that was killed sends again, say nothing.
 */

import { httpClient } from '#test/kit/http-gateway.ts'
import { createReceiver } from '#test/kit/receiver.ts'

export interface Watcher {
  readonly complaints: readonly string[]
  readonly seen: () => number
  /** Subscribes at the hub, which keeps the subscription. */
  subscribe(hubUrl: string, types: readonly string[]): Promise<void>
  /** The hub goes on from an older copy: what it told before means nothing. */
  forget(): void
  close(): Promise<void>
}

interface Told {
  readonly id: string
  readonly subscriptionId: string
  readonly data: readonly Record<string, unknown>[]
}

interface Instance {
  readonly observedAt?: string
  readonly datasetId?: string
}

const watched = ['level', 'temperature', 'mode', 'http://www.w3.org/ns/sosa/hasSimpleResult']

const triggers = [
  'entityCreated',
  'entityUpdated',
  'entityDeleted',
  'attributeCreated',
  'attributeUpdated',
  'attributeDeleted',
]

export async function createWatcher(): Promise<Watcher> {
  const receiver = await createReceiver()
  const complaints: string[] = []
  const known = new Set<string>()
  /** Newest observedAt by instance, by subscription and entity. */
  const newest = new Map<string, Map<string, string>>()
  let seen = 0

  function take(entity: Record<string, unknown>, subscription: string): void {
    const { id, type: _, ...attributes } = entity as { id: string; type: unknown }
    const before = newest.get(`${subscription} ${id}`) ?? new Map<string, string>()
    const now = new Map<string, string>()
    for (const [name, given] of Object.entries(attributes)) {
      for (const one of (Array.isArray(given) ? given : [given]) as Instance[]) {
        if (typeof one !== 'object' || one === null || one.observedAt === undefined) continue
        const key = `${name} ${one.datasetId ?? ''}`
        const last = before.get(key)
        if (last !== undefined && Date.parse(one.observedAt) < Date.parse(last))
          complaints.push(
            `${id} ${key} went back from ${last} to ${one.observedAt} (${new Date().toISOString()})`,
          )
        now.set(key, one.observedAt)
      }
    }
    newest.set(`${subscription} ${id}`, now)
    seen++
  }

  receiver.answer(({ body }) => {
    receiver.forget()
    const { id, subscriptionId, data } = JSON.parse(body) as Told
    if (known.has(id)) return 204
    known.add(id)
    for (const one of data) take(one, subscriptionId)
    return 204
  })

  return {
    complaints,
    seen: () => seen,
    forget() {
      newest.clear()
      known.clear()
    },
    async subscribe(hubUrl, types) {
      for (const attribute of watched) {
        const subscription = {
          id: `urn:judge:${attribute.split(/[#/]/).at(-1)}`,
          type: 'Subscription',
          entities: types.map((type) => ({ type })),
          watchedAttributes: [attribute],
          notificationTrigger: triggers,
          notification: {
            attributes: [attribute],
            endpoint: { uri: receiver.url(), accept: 'application/json' },
          },
        }
        const reply = await httpClient(hubUrl).send('POST', '/ngsi-ld/v1/subscriptions', subscription)
        if (reply.status !== 201) throw new TypeError(`the hub answered ${reply.status}: ${reply.text}`)
      }
    },
    close: () => receiver.down(),
  }
}
