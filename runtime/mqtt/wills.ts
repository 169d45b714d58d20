/**
 * Wills (MQTT 3.1.1, section 3.1.2.5), on disk as long as their client is connected. Those found at start belonged to
 * clients that were connected when the gateway ended; they are published after a grace unless the client is back.
 * A will is known by identity, because a client that takes over its own connection may bring an equal one.
 */
import type { Door } from '#broker/door.ts'
import type { Stage } from '#broker/stage.ts'
import type { SessionRows } from '#store/sessions.ts'
import type { Chores } from './chores.ts'
import { asQos, type Qos } from './wire.ts'

/** In the shape the broker library knows; `clientId` marks a message as a will. */
export interface Will {
  readonly clientId: string
  readonly topic: string
  readonly payload: Buffer
  readonly qos: Qos
  readonly retain: boolean
}

export interface WillsPorts {
  readonly rows: Pick<SessionRows, 'wills'>
  readonly door: Pick<Door, 'commit'>
  readonly chores: Chores
}

export function createWills({ rows, door, chores }: WillsPorts) {
  const byClient = new Map<string, Will>()
  const left = new Set<Will>()
  for (const { client, topic, qos, retain, payload } of rows.wills()) {
    const will = {
      clientId: client,
      topic,
      payload: Buffer.from(payload),
      qos: asQos(qos),
      retain: retain === 1,
    }
    byClient.set(client, will)
    left.add(will)
  }

  /** Writes what holds for a client now, so that the order of writes does not matter. */
  const put =
    (client: string) =>
    (stage: Stage): void => {
      const will = byClient.get(client)
      if (will === undefined) {
        stage.write('will.delete', client)
      } else {
        const { topic, qos, retain, payload } = will
        stage.write('will.put', client, topic, qos, retain ? 1 : 0, new Uint8Array(payload))
      }
    }

  function remove(will: Will): void {
    left.delete(will)
    if (byClient.get(will.clientId) === will) byClient.delete(will.clientId)
  }

  function drop(will: Will): void {
    if (byClient.get(will.clientId) !== will) return
    remove(will)
    chores.set(`will:${will.clientId}`, put(will.clientId))
  }

  return Object.freeze({
    /** Stores the will of a client that connects, in place of an earlier one; settles when it is on disk. */
    async put(will: Will): Promise<void> {
      const before = byClient.get(will.clientId)
      if (before !== undefined) left.delete(before)
      byClient.set(will.clientId, will)
      // A disk that refuses must not keep devices away: the will holds in memory until it is written.
      await door.commit(put(will.clientId)).catch(() => {
        chores.set(`will:${will.clientId}`, put(will.clientId))
      })
    },
    drop,
    /** A client connects: the will it left before is void. */
    dropOf(client: string): void {
      const will = byClient.get(client)
      if (will !== undefined) drop(will)
    },
    /** Deletes a will in the commit that publishes it. */
    decide(stage: Stage, will: Will): void {
      if (byClient.get(will.clientId) !== will) return
      stage.write('will.delete', will.clientId)
      stage.published(() => remove(will))
    },
    /** Wills of clients that were connected when the gateway ended and are not back. */
    left: () => [...left],
  })
}

export type Wills = ReturnType<typeof createWills>
