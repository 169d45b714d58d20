/**
 * The side of our state that the broker library asks for. It asks while it answers CONNECT, SUBSCRIBE, UNSUBSCRIBE
 * and acknowledgements; messages, retained ones and queues do not go through it, so those of its questions find
 * nothing. Every promise here settles when its change is on disk.
 */
import { Readable } from 'node:stream'
import type { Client } from 'aedes'
import { GatewayError } from '#base/errors.ts'
import type { Presence } from './presence.ts'
import type { Receipts } from './receipts.ts'
import type { SessionQueues } from './session-queue.ts'
import type { Sessions } from './sessions.ts'
import type { Will, Wills } from './wills.ts'

export interface PersistencePorts {
  readonly sessions: Sessions
  readonly queues: SessionQueues
  readonly receipts: Receipts
  readonly wills: Wills
  readonly presenceOf: (client: Client) => Presence | undefined
}

interface Numbered {
  readonly messageId: number
}

/** The library takes a session for present when it had a subscription; this one matches no topic. */
export const sessionMark = '$SYS/session'

export function createPersistence(ports: PersistencePorts) {
  const { sessions, queues, receipts, wills, presenceOf } = ports

  const nothing = (): Readable => Readable.from([])
  const settled = async (): Promise<void> => undefined
  const storing = new WeakMap<object, Promise<void>>()

  async function subscribe(client: string, filters: { topic: string; qos: number }[]): Promise<void> {
    const session = sessions.get(client)
    if (session !== undefined) await sessions.subscribe(session, filters)
  }

  return Object.freeze({
    async setup() {},
    // Subscriptions
    async subscriptionsByClient({ id }: { id: string }) {
      const { isPresent } = sessions.begin(id)
      return isPresent ? [{ topic: sessionMark, qos: 0 }] : []
    },
    /** Asked once per filter with all filters of a SUBSCRIBE, some of them not authorised yet. */
    addSubscriptions({ id }: { id: string }, filters: { topic: string; qos: number }[]) {
      const stored = storing.get(filters) ?? Promise.resolve().then(() => subscribe(id, filters))
      storing.set(filters, stored)
      return stored
    },
    async removeSubscriptions({ id }: { id: string }, filters: string[]) {
      const session = sessions.get(id)
      if (session !== undefined) await sessions.unsubscribe(session, filters)
    },
    async cleanSubscriptions({ id }: { id: string }) {
      receipts.clear(id)
      await sessions.end(id)
    },
    subscriptionsByTopic: async () => [],
    // Messages owed to clients
    async outgoingUpdate(client: Client, { messageId }: Numbered) {
      const session = sessions.get(client.id)
      if (session !== undefined) await queues.received(session, messageId)
    },
    async outgoingClearMessageId(client: Client, { messageId }: Numbered) {
      const session = client.clean ? undefined : sessions.get(client.id)
      if (session === undefined || !queues.acknowledged(session, messageId)) {
        presenceOf(client)?.link.answered()
      }
      return undefined
    },
    outgoingEnqueue: settled,
    outgoingEnqueueCombi: settled,
    outgoingStream: nothing,
    // QoS 2 messages of clients. The first question after a message was stored sends it on.
    async incomingGetPacket(client: Client, { messageId }: Numbered) {
      const receipt = receipts.find(client.id, messageId)
      if (receipt?.state === 'stored') receipt.state = 'known'
      else if (receipt?.state === 'known') return { messageId }
      throw new GatewayError('mqtt.protocol', 'no such packet')
    },
    incomingStorePacket: settled,
    async incomingDelPacket(client: Client, { messageId }: Numbered) {
      const receipt = receipts.find(client.id, messageId)
      if (receipt !== undefined) await receipts.release(receipt)
    },
    async cleanIncoming({ id }: { id: string }) {
      if (sessions.get(id) === undefined) receipts.clear(id)
    },
    // Retained messages
    storeRetained: settled,
    createRetainedStream: nothing,
    createRetainedStreamCombi: nothing,
    // Wills
    async putWill(client: Client, will: Will) {
      const presence = presenceOf(client)
      if (presence === undefined) return
      presence.will = Object.assign(will, { clientId: client.id })
      await wills.put(will)
    },
    /** Asked at CONNECT with the client, where an earlier will is void; later questions come after we knew. */
    async delWill(client: { id: string }) {
      if ('conn' in client) wills.dropOf(client.id)
    },
    getWill: settled,
    streamWill: () => Readable.from(wills.left()),
    getClientList: nothing,
    destroy: settled,
  })
}
