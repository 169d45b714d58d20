/**
 * A subscriber of the hub: for every attribute instance it checks that the times of its current values never
 * go back while the entity exists. Each attribute has a subscription of its own, because only changed
 * attributes are reported as they were. A restarted hub repeats unacknowledged notifications, possibly
 * grouped differently. So only the order per entity is checked, not notification ids.
 */

import { httpClient } from '#test/kit/http-gateway.ts'
import { createNotifiedOrder } from '#test/kit/notified-order.ts'
import { createReceiver } from '#test/kit/receiver.ts'
import type { Phoenix } from './phoenix.ts'

export interface Watcher {
  readonly complaints: readonly string[]
  readonly seen: () => number
  /** Subscribes at the hub, which stores the subscription. */
  subscribe(hub: Phoenix, types: readonly string[]): Promise<void>
  /** Called when the hub continues from an older copy: earlier notifications no longer count. */
  forget(): void
  close(): Promise<void>
}

interface Told {
  readonly subscriptionId: string
  readonly data: readonly Record<string, unknown>[]
}

/** The observedAt of each instance of the watched attribute. */
type Times = Readonly<Record<string, string>>

/** Finds an instance whose time in `times` is before that in `last`. */
const olderIn = (last: Times, times: Times): string | undefined =>
  Object.keys(times).find((key) => Date.parse(times[key]!) < Date.parse(last[key] ?? ''))

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
  let seen = 0
  let ends = () => 0
  const order = createNotifiedOrder<Times>({
    isBack: (last, times) => olderIn(last, times) !== undefined,
    ends: () => ends(),
  })

  function take(entity: Record<string, unknown>, subscription: string): void {
    const { id, type: _, ...attributes } = entity as { id: string; type: unknown }
    const times: Record<string, string> = {}
    for (const [name, given] of Object.entries(attributes)) {
      for (const one of (Array.isArray(given) ? given : [given]) as Instance[]) {
        if (typeof one !== 'object' || one === null || one.observedAt === undefined) continue
        times[`${name} ${one.datasetId ?? ''}`] = one.observedAt
      }
    }
    const before = order.take(`${subscription} ${id}`, times)
    seen++
    if (before === undefined) return
    const [from, to] = [before, times].map((state) => JSON.stringify(state))
    complaints.push(`${id} went back from ${from} to ${to} (${new Date().toISOString()})`)
  }

  receiver.answer(({ body }) => {
    receiver.forget()
    const { subscriptionId, data } = JSON.parse(body) as Told
    for (const one of data) take(one, subscriptionId)
    return 204
  })

  return {
    complaints,
    seen: () => seen,
    forget: order.forget,
    async subscribe(hub, types) {
      ends = () => hub.lives().ended
      const { httpUrl: hubUrl } = await hub.now()
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
