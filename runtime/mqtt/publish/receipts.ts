/**
 * QoS 2 messages received and not yet released by their sender, so that a re-sent one is not published again
 * ([MQTT-4.3.3-2]). The receipt of a persistent session is stored in the commit of its message. It is deleted
 * from disk before PUBCOMP, because the sender may then reuse the packet identifier.
 */
import type { GatewayError } from '#base/register/errors.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Session } from '#mqtt/sessions/session-queue.ts'
import type { Sessions } from '#mqtt/sessions/sessions.ts'
import type { SessionRows } from '#store/tables/mqtt-rows.ts'
import type { PublishQueue } from './publish-queue.ts'

export interface Receipt {
  readonly client: string
  readonly id: number
  /** storing: its commit, or that of an earlier message, is not finished. */
  state: 'storing' | 'stored'
  /** The session that the stored row belongs to. */
  session: Session | undefined
  /** Called with the outcome, when the same packet was sent again meanwhile. */
  readonly waiting: ((isStored: boolean) => void)[]
}

export interface ReceiptsPorts {
  readonly rows: Pick<SessionRows, 'incoming'>
  readonly sessions: Sessions
  readonly admission: PublishQueue
}

export function createReceipts({ rows, sessions, admission }: ReceiptsPorts) {
  const byClient = new Map<string, Map<number, Receipt>>()

  function add(client: string, id: number, state: Receipt['state'], session: Session | undefined): Receipt {
    const receipt: Receipt = { client, id, state, session, waiting: [] }
    const receipts = byClient.get(client) ?? new Map<number, Receipt>()
    byClient.set(client, receipts.set(id, receipt))
    return receipt
  }

  function remove({ client, id }: Receipt): void {
    const receipts = byClient.get(client)
    receipts?.delete(id)
    if (receipts?.size === 0) byClient.delete(client)
  }

  const sessionNumbers = new Map([...sessions.all()].map((session) => [session.s, session]))
  for (const { s, message_id: id } of rows.incoming()) {
    const session = sessionNumbers.get(s)
    if (session !== undefined) add(session.client, id, 'stored', session)
  }

  return Object.freeze({
    find: (client: string, id: number) => byClient.get(client)?.get(id),
    count: (client: string) => byClient.get(client)?.size ?? 0,
    begin: (client: string, id: number): Receipt => add(client, id, 'storing', undefined),
    /** Writes the receipt in the commit of its message, if the client has a session. */
    decide(stage: Stage, receipt: Receipt): void {
      const session = sessions.get(receipt.client)
      if (session === undefined) return
      if (!session.isStored) sessions.put(stage, session)
      stage.write('incoming.insert', session.s, receipt.id)
      receipt.session = session
    },
    /** The message is stored and PUBREC is due. */
    settle(receipt: Receipt): void {
      receipt.state = 'stored'
      for (const action of receipt.waiting.splice(0)) action(true)
    },
    /** The message could not be stored. */
    refuse(receipt: Receipt): void {
      remove(receipt)
      for (const action of receipt.waiting.splice(0)) action(false)
    },
    /** Handles PUBREL: resolves when the receipt is deleted from disk, however long the disk refuses. */
    release(receipt: Receipt): Promise<void> {
      const { session } = receipt
      if (session === undefined) {
        remove(receipt)
        return Promise.resolve()
      }
      return new Promise((resolve) => {
        const work = {
          urgent: false,
          bytes: 0,
          place: undefined,
          decide: (stage: Stage) => stage.write('incoming.delete', session.s, receipt.id),
          answer(error?: GatewayError) {
            if (error !== undefined) {
              admission.hold(work, error)
            } else {
              remove(receipt)
              resolve()
            }
          },
        }
        admission.offer(work, true)
      })
    },
    /** Removes all receipts of a client whose session ended. */
    clear: (client: string) => void byClient.delete(client),
  })
}

export type Receipts = ReturnType<typeof createReceipts>
