/**
 * All that goes between this gateway and other brokers downward: where it is registered, so that others ask it; the tunnels it
 * holds open, so that they reach it; and what it copies from there. What an earlier run did over there and the settings do not want any more is undone.
 */

import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import { requireSecretFile } from '#config/load/http-token.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { OutgoingRequest } from '#delivery/http-endpoint.ts'
import type { Sent } from '#delivery/verdict.ts'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { parseRegistration } from '#ngsi-ld/federation/registration-parse.ts'
import { createDownwardNotes } from '#store/tables/downward-notes.ts'
import { type CentreSettings, createCentre } from './centre.ts'
import type { CopiesStatus } from './copies.ts'
import { openCopies, subscriptionAt } from './copy-set.ts'
import type { DownwardPorts } from './downward-ports.ts'
import { createNotes, keyOf, type Note } from './notes.ts'
import { type RegisterSettings, registrationOf } from './own-registration.ts'
import {
  createRegistrar,
  type Registrar,
  type RegistrarSettings,
  type RegistrationStatus,
} from './registration-upkeep.ts'
import type { TunnelState } from './tunnel.ts'
import { openTunnels, sendThrough } from './tunnel-set.ts'
import { createUndoing } from './undoing.ts'

export interface DownwardStatus {
  readonly registrations: readonly RegistrationStatus[]
  readonly tunnels: readonly TunnelState[]
  readonly copies: readonly CopiesStatus[]
}

export interface Downward {
  status(): DownwardStatus
  /** Sends a notification through the tunnel to the centre that its address names. */
  send(request: OutgoingRequest): Promise<Sent>
  close(): Promise<void>
}

/** @throws config.invalid when a file of a token cannot be read, or what is to be registered is no registration. */
export function openDownward(ports: DownwardPorts, settings: Settings): Downward {
  const { register, http } = settings
  const { alias, clock, dice, log, metrics } = ports
  const notes = createNotes({ ...ports, rows: createDownwardNotes(ports.database) })
  const centreFor = (settings: CentreSettings, tenant = '') =>
    createCentre({ ...ports, alias: alias(tenant) }, settings)

  const wishes = register.map((one) => wishOf(one, { alias, publicUrl: http.publicUrl, now: clock.now() }))
  const wanted = new Set([
    ...wishes.map(({ centre, registration: { id } }) => keyOf({ kind: 'registration', id, centre })),
    ...settings.copies.map((one) => keyOf(subscriptionAt(one, alias('')))),
  ])
  const unwanted: Note[] = [...notes.all()].filter((note) => !wanted.has(keyOf(note)))
  const undoing = createUndoing({ notes, centreFor, clock, dice, log }, unwanted)
  const registrars: readonly Registrar[] = wishes.map((wish) =>
    createRegistrar({ centre: centreFor(wish.centre, wish.tenant), notes, clock, dice, log }, wish),
  )
  const registered = (): number =>
    registrars.filter((registrar) => registrar.status().state === 'registered').length
  if (registrars.length > 0) metrics.gauge('selvedge_registered', registered)

  const tunnels = openTunnels(ports, settings)
  const copies = openCopies(ports, { settings, notes, centreFor })
  if (tunnels.length > 0)
    metrics.gauge('selvedge_tunnels_held', () => tunnels.filter((one) => one.open() !== undefined).length)

  return Object.freeze({
    status: () => ({
      registrations: registrars.map((registrar) => registrar.status()),
      tunnels: tunnels.map((one) => one.status()),
      copies: copies.map((one) => one.status()),
    }),
    send: (request) => sendThrough(tunnels, request),
    async close() {
      await Promise.all([undoing, ...registrars, ...tunnels, ...copies].map((one) => one.close()))
    },
  } satisfies Downward)
}

interface Here {
  readonly alias: (tenant: string) => string
  readonly publicUrl: string | undefined
  readonly now: number
}

function wishOf(one: RegisterSettings, here: Here): RegistrarSettings & { readonly tenant: string } {
  const { url, tokenFile, tenant, sourceTokenFile, sourceTenant = '', expirySeconds } = one
  if (tokenFile !== undefined) requireSecretFile(tokenFile)
  const registration = registrationOf(one, {
    alias: here.alias(sourceTenant),
    gateway: here.alias(''),
    publicUrl: here.publicUrl,
    sourceToken: sourceTokenFile === undefined ? undefined : requireSecretFile(sourceTokenFile),
  })
  try {
    parseRegistration(registration, { context: coreContext, nowMs: here.now, newId: () => 'urn:x' })
  } catch (error) {
    const { message, details } = toGatewayError(error)
    throw new GatewayError('config.invalid', `register ${one.name}: ${message}`, details, error)
  }
  return {
    tenant: sourceTenant,
    centre: { url, tokenFile, tenant },
    registration: registration as RegistrarSettings['registration'],
    expiryMs: expirySeconds * 1000,
    refreshMs: (one.refreshSeconds ?? expirySeconds / 3) * 1000,
  }
}
