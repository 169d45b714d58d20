/**
 * Wills (MQTT 3.1.1, section 3.1.2.5), on disk as long as their client is connected. Those found at start belonged to
 * clients that were connected when the gateway ended; they are published after a grace unless the client is back.
 */
import type { Stage } from '#broker/door.ts'
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

export function createWills({ rows, chores }: { rows: Pick<SessionRows, 'wills'>; chores: Chores }) {
  const current = new Map<string, Will>()
  const left = new Map<string, Will>()
  for (const { client, topic, qos, retain, payload } of rows.wills()) {
    left.set(client, {
      clientId: client,
      topic,
      payload: Buffer.from(payload),
      qos: asQos(qos),
      retain: retain === 1,
    })
  }

  return Object.freeze({
    /** Stores the will of a client that connects; settles by chores, for the will holds in memory meanwhile. */
    put(will: Will): void {
      const { clientId, topic, qos, retain, payload } = will
      left.delete(clientId)
      current.set(clientId, will)
      chores.set(`will:${clientId}`, (stage) => {
        stage.write('will.put', clientId, topic, qos, retain ? 1 : 0, new Uint8Array(payload))
      })
    },
    /** The will of a client is no longer needed. */
    drop(client: string): void {
      if (!current.delete(client) && !left.delete(client)) return
      chores.set(`will:${client}`, (stage) => stage.write('will.delete', client))
    },
    /** Deletes a will in the commit that publishes it, unless the client has left another one meanwhile. */
    decide(stage: Stage, will: Will): void {
      const { clientId } = will
      const newer = current.get(clientId)
      if (newer !== undefined && newer.topic !== will.topic) return
      stage.write('will.delete', clientId)
    },
    /** Wills of clients that were connected when the gateway ended. */
    left: () => [...left.values()],
  })
}

export type Wills = ReturnType<typeof createWills>
