/**
 * Keeps this gateway registered at one centre: made, renewed before it expires, made again when the centre lost it, made
 * anew when the settings changed. What is refused is told once and tried again when a renewal would be due.
 */

import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { shownUri } from '#delivery/probe.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { type Centre, type CentreSettings, complaintOf } from './centre.ts'
import { keyOf, type Note, type Notes, printOf } from './notes.ts'
import { createPauses } from './pause.ts'
import { createTrying, done, setback, type Tried } from './trying.ts'

export interface RegistrarPorts {
  readonly centre: Centre
  readonly notes: Notes
  readonly clock: Clock
  readonly dice: () => number
  readonly log: Log
}

export interface RegistrarSettings {
  readonly centre: CentreSettings
  /** Without expiresAt. */
  readonly registration: JsonObject & { readonly id: string }
  readonly expiryMs: number
  readonly refreshMs: number
}

export interface RegistrationStatus {
  readonly id: string
  readonly centre: string
  readonly state: 'registered' | 'refused' | 'waiting'
  /** Why it is not registered, or could not be renewed. */
  readonly reason?: string | undefined
  /** DateTime when it was last known to be there. */
  readonly seenAt?: string | undefined
}

export interface Registrar {
  status(): RegistrationStatus
  close(): Promise<void>
}

const path = '/csourceRegistrations'
const pathOf = (id: string): string => `${path}/${encodeURIComponent(id)}`

export function createRegistrar(ports: RegistrarPorts, settings: RegistrarSettings): Registrar {
  const { centre, notes, clock, dice, log } = ports
  const { registration, expiryMs, refreshMs } = settings
  const { id } = registration
  const facts = { registration: id, centre: shownUri(settings.centre.url) }
  const note: Note = { kind: 'registration', id, centre: settings.centre, print: printOf(registration) }
  const pauses = createPauses()
  const trying = createTrying(settings.centre.url, {
    clock,
    pauses,
    dice,
    onChange: (trouble) => {
      if (trouble !== undefined) log.warn('registration.failed', { ...facts, reason: trouble })
    },
  })
  let state: RegistrationStatus['state'] = 'waiting'
  let seenAt: number | undefined
  /** What is over there is what is wanted, for all we know. */
  let isCurrent = notes.get(keyOf(note))?.print === note.print

  const expiry = (): JsonObject => ({ expiresAt: msToDateTime(centre.now() + expiryMs) })

  async function make(): Promise<Tried> {
    await notes.put(note)
    const context = registration['@context'] as string | undefined
    const answer = await centre.ask('POST', path, { ...registration, ...expiry() }, context)
    if ('failure' in answer || answer.status !== 201) return setback(answer, complaintOf(answer))
    log.info('registration.made', facts)
    return done
  }

  /** Removes what is there under our id; what an earlier life or other settings made. */
  async function clear(): Promise<Tried> {
    const answer = await centre.ask('DELETE', pathOf(id))
    const isGone = 'status' in answer && (answer.status === 204 || answer.status === 404)
    return isGone ? done : setback(answer, complaintOf(answer))
  }

  async function renew(): Promise<Tried> {
    const answer = await centre.ask('PATCH', pathOf(id), expiry())
    if ('failure' in answer) return setback(answer, complaintOf(answer))
    if (answer.status >= 200 && answer.status < 300) return done
    if (answer.status === 404) return make()
    // A broker that cannot change one is told anew.
    return [405, 422, 501].includes(answer.status) ? anew() : setback(answer, complaintOf(answer))
  }

  async function anew(): Promise<Tried> {
    const cleared = await clear()
    return cleared.kind === 'done' ? make() : cleared
  }

  async function keep(): Promise<Tried> {
    // Looking first tells what the clock over there says, too.
    const there = await centre.ask('GET', pathOf(id))
    if ('failure' in there || (there.status !== 200 && there.status !== 404))
      return setback(there, complaintOf(there))
    if (there.status === 404) return make()
    return isCurrent ? renew() : anew()
  }

  async function run(): Promise<void> {
    while (!pauses.isClosed()) {
      const tried = await trying.until(keep)
      if (tried === undefined) return
      state = tried.kind === 'done' ? 'registered' : 'refused'
      if (tried.kind === 'done') {
        isCurrent = true
        seenAt = clock.now()
      }
      await pauses.rest(refreshMs)
    }
  }
  const running = run().catch((error: unknown) => {
    if (!pauses.isClosed()) log.error('gateway.fault', { during: 'registration', error })
  })

  return Object.freeze({
    status() {
      const reason = trying.trouble()
      const now = reason !== undefined && state === 'registered' ? 'waiting' : state
      const seen = seenAt === undefined ? undefined : msToDateTime(seenAt)
      return { id, centre: facts.centre, state: now, reason, seenAt: seen }
    },
    close: () => pauses.close(running),
  } satisfies Registrar)
}
