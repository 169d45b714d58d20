/**
 * Retained messages (MQTT 3.1.1 and 5, section 3.3.1.3): the last one of each topic, in memory and on disk. A
 * message becomes visible when its commit is on disk. At a limit a message is not retained, and the previous
 * one is removed, because it would be stale. Expired messages are not delivered, and removed.
 */

import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { BackgroundWrites } from '#mqtt/sessions/background-writes.ts'
import { createTopicTree } from '#mqtt/wire/topic-tree.ts'
import type { Message } from '#mqtt/wire/wire.ts'
import type { SessionRows } from '#store/tables/mqtt-rows.ts'

export interface RetainedSettings {
  readonly retainedMessages: number
  readonly retainedBytes: number
}

export function createRetainedMessages(
  ports: {
    readonly rows: Pick<SessionRows, 'retained'>
    /** Messages of the server itself, which never change: in memory only, and not counted. */
    readonly fixed: readonly Message[]
    readonly backgroundWrites: BackgroundWrites
    readonly clock: Clock
    readonly log: Log
  },
  settings: RetainedSettings,
) {
  const tree = createTopicTree<Message>()
  /** Size of each topic as decided; on disk it is one group behind. */
  const sizes = new Map<string, number>()
  /** Messages that expire. */
  const expiring = new Map<string, Message>()
  let bytes = 0
  let isWarned = false

  function show(message: Message): void {
    tree.set(message.topic, message)
    if (message.expiresAt === undefined) expiring.delete(message.topic)
    else expiring.set(message.topic, message)
  }

  function hide(topic: string): void {
    tree.delete(topic)
    expiring.delete(topic)
  }

  function resize(topic: string, size: number | undefined): void {
    bytes += (size ?? 0) - (sizes.get(topic) ?? 0)
    if (size === undefined) sizes.delete(topic)
    else sizes.set(topic, size)
  }

  const sizeOf = ({ topic, payload, properties }: Message): number =>
    topic.length + payload.length + (properties?.length ?? 0)

  function isTooMuch(topic: string, size: number): boolean {
    const before = sizes.get(topic)
    const isTooMany = before === undefined && sizes.size >= settings.retainedMessages
    if (!isTooMany && bytes - (before ?? 0) + size <= settings.retainedBytes) return false
    if (!isWarned) ports.log.warn('mqtt.retained-refused', { topic, messages: sizes.size, bytes })
    isWarned = true
    return true
  }

  for (const row of ports.rows.retained()) {
    const { topic, payload, qos, properties, expires } = row
    const message: Message = {
      topic,
      payload,
      qos,
      properties: properties ?? undefined,
      expiresAt: expires ?? undefined,
    }
    show(message)
    resize(message.topic, sizeOf(message))
  }

  for (const message of ports.fixed) tree.set(message.topic, message)

  /**
   * Retains a message as part of a commit, or removes the retained one when the payload is empty
   * ([MQTT-3.3.1-5], [MQTT-3.3.1-10]).
   */
  function decide(stage: Stage, message: Message): void {
    const { topic, qos, payload, properties, expiresAt } = message
    const size = sizeOf(message)
    const isKept = payload.length > 0 && !isTooMuch(topic, size)
    if (!isKept && !sizes.has(topic)) return
    const before = sizes.get(topic)
    resize(topic, isKept ? size : undefined)
    stage.undone(() => resize(topic, before))
    if (isKept) stage.write('retained.put', topic, qos, payload, properties ?? null, expiresAt ?? null)
    else stage.write('retained.delete', topic)
    stage.published(() => {
      if (isKept) show(message)
      else hide(topic)
    })
  }

  return Object.freeze({
    has: (topic: string) => sizes.has(topic),
    decide,
    get: (topic: string) => tree.get(topic),
    matching: (filter: string) => tree.matching(filter),
    /** Removes expired messages; called periodically. */
    expire(): void {
      if (!(ports.clock.trust?.mayRemove() ?? true)) return
      const now = ports.clock.now()
      for (const [topic, message] of expiring) {
        if (message.expiresAt! > now) continue
        ports.backgroundWrites.set(`retained:${topic}`, (stage) => {
          if (tree.get(topic) === message) decide(stage, { topic, qos: 0, payload: new Uint8Array() })
        })
      }
    },
    count: () => sizes.size,
  })
}

export type RetainedMessages = ReturnType<typeof createRetainedMessages>
