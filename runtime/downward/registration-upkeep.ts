/**
 * Keeps this gateway registered at one centre: creates the registration, renews it before it expires,
 * re-creates it when the centre lost it, and replaces it when the settings changed. A refusal is logged once
 * and retried when the next renewal is due.
 */

import type { ClockAndLog } from '#base/process/instruments.ts'
import { shownUri } from '#delivery/probe.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { type Centre, type CentreSettings, failureReason } from './centre.ts'
import { hashOf, keyOf, type Note, type Notes } from './notes.ts'
import { createPauses } from './pause.ts'
import { type Attempt, createRetrying, done, failedAttempt } from './retrying.ts'

export interface RegistrarPorts extends ClockAndLog {
  readonly centre: Centre
  readonly notes: Notes
  readonly random: () => number
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
  /** Why it is not registered or could not be renewed. */
  readonly reason?: string | undefined
  /** DateTime at which it was last confirmed. */
  readonly seenAt?: string | undefined
}

const path = '/csourceRegistrations'
const pathOf = (id: string): string => `${path}/${encodeURIComponent(id)}`

export type Registrar = ReturnType<typeof createRegistrar>

export function createRegistrar(ports: RegistrarPorts, settings: RegistrarSettings) {
  const { centre, notes, clock, random, log } = ports
  const { registration, expiryMs, refreshMs } = settings
  const { id } = registration
  const facts = { registration: id, centre: shownUri(settings.centre.url) }
  const note: Note = { kind: 'registration', id, centre: settings.centre, print: hashOf(registration) }
  const pauses = createPauses()
  const retrying = createRetrying(settings.centre.url, {
    clock,
    pauses,
    random,
    onChange: (trouble) => {
      if (trouble !== undefined) log.warn('registration.failed', { ...facts, reason: trouble })
    },
  })
  let state: RegistrationStatus['state'] = 'waiting'
  let seenAt: number | undefined
  /** Whether the centre's registration matches the settings, as far as known. */
  let isCurrent = notes.get(keyOf(note))?.print === note.print

  const expiry = (): JsonObject => ({ expiresAt: msToDateTime(centre.now() + expiryMs) })

  async function make(): Promise<Attempt> {
    await notes.put(note)
    const context = registration['@context'] as string | undefined
    const answer = await centre.request('POST', path, { ...registration, ...expiry() }, context)
    if ('failure' in answer || answer.status !== 201) return failedAttempt(answer, failureReason(answer))
    log.info('registration.made', facts)
    return done
  }

  /** Deletes an existing registration of this id, left by an earlier run or by other settings. */
  async function clear(): Promise<Attempt> {
    const answer = await centre.request('DELETE', pathOf(id))
    const isGone = 'status' in answer && (answer.status === 204 || answer.status === 404)
    return isGone ? done : failedAttempt(answer, failureReason(answer))
  }

  async function renew(): Promise<Attempt> {
    const answer = await centre.request('PATCH', pathOf(id), expiry())
    if ('failure' in answer) return failedAttempt(answer, failureReason(answer))
    if (answer.status >= 200 && answer.status < 300) return done
    if (answer.status === 404) return make()
    // A broker that cannot update a registration gets a new one.
    return [405, 422, 501].includes(answer.status) ? replace() : failedAttempt(answer, failureReason(answer))
  }

  async function replace(): Promise<Attempt> {
    const cleared = await clear()
    return cleared.kind === 'done' ? make() : cleared
  }

  async function keep(): Promise<Attempt> {
    // The first request also determines the centre's clock.
    const there = await centre.request('GET', pathOf(id))
    if ('failure' in there || (there.status !== 200 && there.status !== 404))
      return failedAttempt(there, failureReason(there))
    if (there.status === 404) return make()
    return isCurrent ? renew() : replace()
  }

  async function run(): Promise<void> {
    while (!pauses.isClosed()) {
      const outcome = await retrying.until(keep)
      if (outcome === undefined) return
      state = outcome.kind === 'done' ? 'registered' : 'refused'
      if (outcome.kind === 'done') {
        isCurrent = true
        seenAt = clock.now()
      }
      await pauses.sleep(refreshMs)
    }
  }
  const running = run().catch((error: unknown) => {
    if (!pauses.isClosed()) log.error('gateway.fault', { during: 'registration', error })
  })

  return Object.freeze({
    status(): RegistrationStatus {
      const reason = retrying.trouble()
      const now = reason !== undefined && state === 'registered' ? 'waiting' : state
      const seen = seenAt === undefined ? undefined : msToDateTime(seenAt)
      return { id, centre: facts.centre, state: now, reason, seenAt: seen }
    },
    close: () => pauses.close(running),
  })
}
