/**
 * Retained messages (MQTT 3.1.1 and 5, section 3.3.1.3): the last one of each topic, in memory and on disk. One becomes
 * visible when the commit that holds it is on disk. At a ceiling a message is not kept, and neither is the one
 * before it, which would be stale. One whose message expiry interval has passed is not delivered, and removed.
 */

import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Chores } from '#mqtt/sessions/chores.ts'
import { createTopicTree } from '#mqtt/wire/topic-tree.ts'
import type { Message } from '#mqtt/wire/wire.ts'
import type { SessionRows } from '#store/tables/mqtt-rows.ts'

export interface RetainedSettings {
  readonly retainedMessages: number
  readonly retainedBytes: number
}

export function createRetained(
  ports: {
    readonly rows: Pick<SessionRows, 'retained'>
    /** What the server itself has to say: in memory only, and not counted. */
    readonly standing: readonly Message[]
    readonly chores: Chores
    readonly clock: Clock
    readonly log: Log
  },
  settings: RetainedSettings,
) {
  const tree = createTopicTree<Message>()
  /** Bytes of each topic as decided, which is ahead of what is on disk by one group. */
  const sizes = new Map<string, number>()
  /** Messages with an end to their lifetime. */
  const lapsing = new Map<string, Message>()
  let bytes = 0
  let isWarned = false

  function show(message: Message): void {
    tree.set(message.topic, message)
    if (message.expiresAt === undefined) lapsing.delete(message.topic)
    else lapsing.set(message.topic, message)
  }

  function hide(topic: string): void {
    tree.delete(topic)
    lapsing.delete(topic)
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

  for (const message of ports.standing) tree.set(message.topic, message)

  /** Keeps a message, or with an empty payload none, as part of a commit ([MQTT-3.3.1-5], [MQTT-3.3.1-10]). */
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
    /** Removes what has lapsed; called now and then. */
    expire(): void {
      if (!(ports.clock.trust?.mayRemove() ?? true)) return
      const now = ports.clock.now()
      for (const [topic, message] of lapsing) {
        if (message.expiresAt! > now) continue
        ports.chores.set(`retained:${topic}`, (stage) => {
          if (tree.get(topic) === message) decide(stage, { topic, qos: 0, payload: new Uint8Array() })
        })
      }
    },
    count: () => sizes.size,
  })
}

export type Retained = ReturnType<typeof createRetained>
