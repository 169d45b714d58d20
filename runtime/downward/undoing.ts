/**
 * Undoes at other brokers what the settings do not want any more: each note without a wish is removed over there, then here.
 * A broker that is away is waited for, for as long as it takes.
 */

import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { shownUri } from '#delivery/probe.ts'
import type { PeerAnswer } from '#federation/peer.ts'
import { parsedJson } from '#ngsi-ld/values/json.ts'
import { problemTypeIn } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { type Centre, type CentreSettings, complaintOf } from './centre.ts'
import type { Note, Notes } from './notes.ts'
import { createPauses } from './pause.ts'
import { createTrying, done, setback } from './trying.ts'

export interface UndoingPorts {
  readonly notes: Notes
  readonly centreFor: (settings: CentreSettings) => Centre
  readonly clock: Clock
  readonly dice: () => number
  readonly log: Log
}

const paths = { registration: '/csourceRegistrations', subscription: '/subscriptions' } as const

type Ask = () => Promise<PeerAnswer>

const isOneOf = (answer: PeerAnswer, ...all: readonly number[]): boolean =>
  'status' in answer && all.includes(answer.status)
const isSaidByBroker = (answer: PeerAnswer): boolean =>
  'status' in answer &&
  (answer.status === 204 || (answer.status === 404 && problemTypeIn(answer.text) !== ''))

/**
 * Whether something is gone by an answer to its removal. Who stands for a broker that is away may say so, too: it counts where a
 * broker says it, or where it is said again after one answered beside it.
 */
async function isGone(answer: PeerAnswer, remove: Ask, look: Ask): Promise<boolean> {
  if (isSaidByBroker(answer)) return true
  if (!isOneOf(answer, 200, 404)) return false
  const list = await look()
  if (!('status' in list) || list.status !== 200 || !Array.isArray(parsedJson(list.text))) return false
  // It may have come back between the two.
  const again = await remove()
  return isSaidByBroker(again) || isOneOf(again, 200, 404)
}

export function createUndoing(
  { notes, centreFor, clock, dice, log }: UndoingPorts,
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
    const tried = await createTrying(note.centre.url, { clock, pauses, dice, onChange }).until(async () => {
      const remove = (): Promise<PeerAnswer> =>
        centre.ask('DELETE', `${paths[kind]}/${encodeURIComponent(id)}`)
      const answer = await remove()
      return (await isGone(answer, remove, () => centre.ask('GET', `${paths[kind]}?limit=1`)))
        ? done
        : setback(answer, complaintOf(answer))
    })
    if (tried === undefined) return
    await notes.delete(note)
    if (tried.kind === 'done') log.info('downward.undone', facts)
  }
  const running = Promise.all(unwanted.map(undo)).catch((error: unknown) => {
    if (!pauses.isClosed()) log.error('gateway.fault', { during: 'undoing', error })
  })

  return Object.freeze({
    close: (): Promise<void> => pauses.close(running),
  })
}
