/**
 * Deletes resources at other brokers that the settings no longer define: each one first at its broker, then
 * its note here. An unreachable broker is retried indefinitely.
 */

import type { ClockAndLog } from '#base/process/instruments.ts'
import { shownUri } from '#delivery/probe.ts'
import type { PeerAnswer } from '#federation/peer.ts'
import { parsedJson } from '#ngsi-ld/values/json.ts'
import { problemTypeIn } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { type Centre, type CentreSettings, failureReason } from './centre.ts'
import type { Note, Notes } from './notes.ts'
import { createPauses } from './pause.ts'
import { createRetrying, done, failedAttempt } from './retrying.ts'

export interface CleanupPorts extends ClockAndLog {
  readonly notes: Notes
  readonly centreFor: (settings: CentreSettings) => Centre
  readonly random: () => number
}

const paths = { registration: '/csourceRegistrations', subscription: '/subscriptions' } as const

type SendRequest = () => Promise<PeerAnswer>

const isOneOf = (answer: PeerAnswer, ...all: readonly number[]): boolean =>
  'status' in answer && all.includes(answer.status)
const isConfirmed = (answer: PeerAnswer): boolean =>
  'status' in answer &&
  (answer.status === 204 || (answer.status === 404 && problemTypeIn(answer.text) !== ''))

/**
 * Whether a response to a deletion proves that the resource no longer exists. A proxy for an absent broker
 * may send the same response. So it counts only in the form of a broker, or if repeated after a broker
 * responded.
 */
async function isRemoved(answer: PeerAnswer, remove: SendRequest, look: SendRequest): Promise<boolean> {
  if (isConfirmed(answer)) return true
  if (!isOneOf(answer, 200, 404)) return false
  const list = await look()
  if (!('status' in list) || list.status !== 200 || !Array.isArray(parsedJson(list.text))) return false
  // The broker may have returned between the two requests.
  const again = await remove()
  return isConfirmed(again) || isOneOf(again, 200, 404)
}

export function createCleanup(
  { notes, centreFor, clock, random, log }: CleanupPorts,
  unwanted: readonly Note[],
) {
  const pauses = createPauses()

  async function undo(note: Note): Promise<void> {
    const { kind, id } = note
    const facts = { [kind]: id, centre: shownUri(note.centre.url) }
    const centre = centreFor(note.centre)
    const onChange = (reason: string | undefined): void => {
      if (reason !== undefined) log.warn('downward.not-undone', { ...facts, reason })
    }
    const outcome = await createRetrying(note.centre.url, { clock, pauses, random, onChange }).until(
      async () => {
        const remove = (): Promise<PeerAnswer> =>
          centre.request('DELETE', `${paths[kind]}/${encodeURIComponent(id)}`)
        const answer = await remove()
        return (await isRemoved(answer, remove, () => centre.request('GET', `${paths[kind]}?limit=1`)))
          ? done
          : failedAttempt(answer, failureReason(answer))
      },
    )
    if (outcome === undefined) return
    await notes.delete(note)
    if (outcome.kind === 'done') log.info('downward.undone', facts)
  }
  const running = Promise.all(unwanted.map(undo)).catch((error: unknown) => {
    if (!pauses.isClosed()) log.error('gateway.fault', { during: 'undoing', error })
  })

  return Object.freeze({
    close: (): Promise<void> => pauses.close(running),
  })
}
