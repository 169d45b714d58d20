/**
 * Undoes at other brokers what the settings do not want any more: each note without a wish is removed over there, then here.
 * A broker that is away is waited for, for as long as it takes.
 */
import type { Clock } from '#base/clock.ts'
import type { Log } from '#base/log.ts'
import { shownUri } from '#delivery/probe.ts'
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
      const answer = await centre.ask('DELETE', `${paths[kind]}/${encodeURIComponent(id)}`)
      const isGone = 'status' in answer && (answer.status < 300 || answer.status === 404)
      return isGone ? done : setback(answer, complaintOf(answer))
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
