/**
 * Handles acknowledgements from clients: PUBACK, PUBREC and PUBCOMP for messages sent to them, PUBREL for
 * messages received (MQTT 3.1.1 and 5, sections 3.4 to 3.7 and 4.3). Each step that a session must remember
 * is on disk before it is answered.
 */

import type { GatewayError } from '#base/register/errors.ts'
import type { Link } from '#mqtt/link/client-connection.ts'
import type { Receipts } from '#mqtt/publish/receipts.ts'
import type { Presences } from '#mqtt/sessions/presence.ts'
import type { SessionQueues } from '#mqtt/sessions/session-queue.ts'
import { isFailure, reasons } from '#mqtt/wire/reasons.ts'
import { queueIdsMax } from '#mqtt/wire/window.ts'
import type { Acknowledgement } from '#mqtt/wire/wire.ts'

export interface AnswersPorts {
  readonly presences: Presences
  readonly queues: SessionQueues
  readonly receipts: Receipts
}

export function createAcknowledgements({ presences, queues, receipts }: AnswersPorts) {
  /** The delivery of a message ended: the client acknowledged or refused it. */
  function settled(link: Link, id: number): void {
    const session = presences.of(link)?.session
    if (id > queueIdsMax) link.window.answered()
    else if (session !== undefined) queues.acknowledged(session, id)
    if (session?.link === link) queues.resume(session)
  }

  /** PUBREC: from now on only PUBREL is pending for the message. */
  async function received(link: Link, id: number): Promise<void> {
    const session = presences.of(link)?.session
    const isOurs = id > queueIdsMax || (session !== undefined && (await queues.received(session, id)))
    const code = isOurs ? reasons.success : reasons.packetIdentifierNotFound
    link.acknowledge({ type: 'pubrel', id, code })
  }

  async function released(link: Link, id: number): Promise<void> {
    const receipt = receipts.find(link.id(), id)
    if (receipt?.state === 'stored') await receipts.release(receipt)
    const code = receipt === undefined ? reasons.packetIdentifierNotFound : reasons.success
    link.acknowledge({ type: 'pubcomp', id, code })
  }

  return function answered(link: Link, { type, id, code }: Acknowledgement): void {
    if (type === 'pubrel') void released(link, id)
    else if (type !== 'pubrec' || isFailure(code)) settled(link, id)
    else received(link, id).catch((error: GatewayError) => link.fail(error.message, reasons.quotaExceeded))
  }
}
