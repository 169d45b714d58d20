/**
 * Wills (MQTT 3.1.1 and 5, section 3.1.2.5), on disk from before CONNACK until they are published or
 * discarded. The will of a client that disconnects without DISCONNECT is published after its delay. Wills
 * found at start belong to clients that were connected when the gateway ended, or to a running delay. They
 * are published after a grace period unless the client reconnects.
 */
import type { Clock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { asQos, type Message } from '#mqtt/wire/wire.ts'
import type { SessionRows } from '#store/tables/mqtt-rows.ts'
import type { BackgroundWrites } from './background-writes.ts'

export interface Will {
  readonly client: string
  readonly message: Message
  readonly retain: boolean
  /** Message expiry interval of MQTT 5. */
  readonly expirySeconds: number | undefined
  /** Will delay interval of MQTT 5. */
  readonly delaySeconds: number
}

export interface WillsPorts {
  readonly rows: Pick<SessionRows, 'wills'>
  readonly door: Pick<Door, 'commit'>
  readonly backgroundWrites: BackgroundWrites
  readonly clock: Clock
  /** How long clients may take to reconnect after a restart. */
  readonly graceMs: number
  readonly publish: (will: Will) => void
}

/** A will of a disconnected client: the monotonic and the wall-clock time of its publication. */
interface Pending {
  readonly dueAt: number
  readonly dueTime: number
}

export function createWills({ rows, door, backgroundWrites, clock, graceMs, publish }: WillsPorts) {
  const byClient = new Map<string, Will>()
  const pending = new Map<Will, Pending>()
  let isStopped = false

  for (const row of rows.wills()) {
    const { client, topic, qos, retain, payload, properties, expiry, delay, due } = row
    const message: Message = { topic, payload, qos: asQos(qos), properties: properties ?? undefined }
    const expirySeconds = expiry ?? undefined
    const will: Will = { client, message, retain: retain === 1, expirySeconds, delaySeconds: delay }
    byClient.set(client, will)
    // If the clock was set meanwhile, the remaining time may be arbitrary; it never exceeds the delay.
    const restMs = due === null ? delay * 1000 : Math.min(due - clock.now(), delay * 1000)
    wait(will, Math.max(graceMs, restMs))
  }

  function wait(will: Will, ms: number): void {
    pending.set(will, { dueAt: clock.monotonic() + ms, dueTime: clock.now() + ms })
  }

  /** Writes the current state for a client, so that the order of writes does not matter. */
  const put =
    (client: string) =>
    (stage: Stage): void => {
      const will = byClient.get(client)
      if (will === undefined) {
        stage.write('will.delete', client)
        return
      }
      const { topic, qos, payload, properties } = will.message
      const due = pending.get(will)?.dueTime ?? null
      const state = [will.expirySeconds ?? null, will.delaySeconds, due] as const
      const bytes = new Uint8Array(payload)
      stage.write('will.put', client, topic, qos, will.retain ? 1 : 0, bytes, properties ?? null, ...state)
    }

  const note = (client: string): void => backgroundWrites.set(`will:${client}`, put(client))

  function remove(will: Will): void {
    pending.delete(will)
    if (byClient.get(will.client) === will) byClient.delete(will.client)
  }

  function release(will: Will): void {
    pending.delete(will)
    publish(will)
  }

  return Object.freeze({
    /** Stores the will of a connecting client; resolves when it is on disk. */
    async put(will: Will): Promise<void> {
      byClient.set(will.client, will)
      // A full disk must not keep devices from connecting: the will stays in memory until it is written.
      const bytes = will.message.payload.length
      await door.commit(put(will.client), { bytes }).catch(() => note(will.client))
    },
    /** The client sent DISCONNECT: its will is discarded. */
    drop(will: Will): void {
      if (byClient.get(will.client) !== will) return
      remove(will)
      note(will.client)
    },
    /** The client disconnected without DISCONNECT; its session, if any, ends after `sessionMs`. */
    leave(will: Will, sessionMs: number): void {
      if (isStopped || byClient.get(will.client) !== will) return
      const delayMs = Math.min(will.delaySeconds * 1000, sessionMs)
      wait(will, delayMs)
      if (delayMs === 0) release(will)
      else note(will.client)
    },
    /**
     * The client reconnected: its will is discarded, unless it was delayed and the session ends
     * ([MQTT-3.1.3-9]).
     */
    clientReturned(client: string, isSessionEnded: boolean): void {
      const will = byClient.get(client)
      if (will === undefined) return
      if (isSessionEnded && will.delaySeconds > 0 && pending.has(will)) {
        release(will)
        return
      }
      remove(will)
      note(client)
    },
    /** Publishes wills that are due. */
    publishDue(): void {
      if (isStopped) return
      const now = clock.monotonic()
      for (const [will, { dueAt }] of pending) if (dueAt <= now) release(will)
    },
    /** A will could not be stored for its subscribers: it is retried. */
    postpone: (will: Will): void => wait(will, graceMs),
    /** Deletes a will in the commit that publishes it. */
    decide(stage: Stage, will: Will): void {
      if (byClient.get(will.client) !== will) return
      stage.write('will.delete', will.client)
      stage.published(() => remove(will))
    },
    /** From now on wills stay on disk. */
    stop(): void {
      isStopped = true
    },
  })
}

export type Wills = ReturnType<typeof createWills>
