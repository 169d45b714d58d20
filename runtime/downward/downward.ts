/**
 * Everything this gateway sets up at central brokers so that they can query it: registrations, tunnels that
 * keep it reachable, and copies of their entities. Resources of an earlier run that the settings no longer
 * define are removed.
 */

import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import { requireSecretFile } from '#config/load/secret-files.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { OutgoingRequest } from '#delivery/http-endpoint.ts'
import type { Failure, Sent } from '#delivery/verdict.ts'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { parseRegistration } from '#ngsi-ld/federation/registration-parse.ts'
import { createDownwardNotes } from '#store/tables/downward-notes.ts'
import { type CentreSettings, createCentre } from './centre.ts'
import { createCleanup } from './cleanup.ts'
import type { CopiesStatus } from './copies.ts'
import { openCopies, subscriptionAt } from './copy-set.ts'
import type { DownwardPorts, TunnelledApp } from './downward-ports.ts'
import { createNotes, keyOf, type Note } from './notes.ts'
import { type RegisterSettings, refreshMsOf, registrationOf } from './own-registration.ts'
import {
  createRegistrar,
  type Registrar,
  type RegistrarSettings,
  type RegistrationStatus,
} from './registration-upkeep.ts'
import type { TunnelState } from './tunnel.ts'
import { openTunnels, sendThrough } from './tunnel-set.ts'

export interface DownwardStatus {
  readonly registrations: readonly RegistrationStatus[]
  readonly tunnels: readonly TunnelState[]
  readonly copies: readonly CopiesStatus[]
}

/** Result of sending through a tunnel while the gateway is starting. */
const starting: Failure = { ok: false, kind: 'reset', reason: 'the gateway is starting' }

export function createDownward(ports: DownwardPorts, settings: Settings) {
  let running: ReturnType<typeof open> | undefined
  return Object.freeze({
    /**
     * Starts everything; the routes of this gateway serve the requests through tunnels.
     *
     * @throws config.invalid when a token file cannot be read, or a registration is invalid.
     */
    start(app: TunnelledApp): void {
      running = open(ports, app, settings)
    },
    /** Undefined before the start. */
    status: (): DownwardStatus | undefined => running?.status(),
    /** Sends a notification through the tunnel to the centre in its address. */
    send: async (request: OutgoingRequest): Promise<Sent> => running?.send(request) ?? starting,
    close: async () => running?.close(),
  })
}

function open(ports: DownwardPorts, app: TunnelledApp, settings: Settings) {
  const { register, http } = settings
  const { alias, clock, random, log, metrics } = ports
  const notes = createNotes({ rows: createDownwardNotes(ports.database), door: ports.door })
  const centreFor = (settings: CentreSettings, tenant = '') =>
    createCentre({ peer: ports.peer, clock, alias: alias(tenant) }, settings)

  const registrations = register.map((one) =>
    registrarSettings(one, { alias, publicUrl: http.publicUrl, now: clock.now() }),
  )
  const wanted = new Set([
    ...registrations.map(({ centre, registration: { id } }) => keyOf({ kind: 'registration', id, centre })),
    ...settings.copies.map((one) => keyOf(subscriptionAt(one, alias('')))),
  ])
  const unwanted: Note[] = [...notes.all()].filter((note) => !wanted.has(keyOf(note)))
  const cleanup = createCleanup({ notes, centreFor, clock, random, log }, unwanted)
  const registrars: readonly Registrar[] = registrations.map((one) =>
    createRegistrar({ centre: centreFor(one.centre, one.tenant), notes, clock, random, log }, one),
  )
  const registered = (): number =>
    registrars.filter((registrar) => registrar.status().state === 'registered').length
  if (registrars.length > 0) metrics.gauge('selvedge_registered', registered)

  const tunnels = openTunnels(ports, app, settings)
  const copies = openCopies(ports, { settings, notes, centreFor })
  if (tunnels.length > 0)
    metrics.gauge('selvedge_tunnels_held', () => tunnels.filter((one) => one.open() !== undefined).length)

  return {
    status: (): DownwardStatus => ({
      registrations: registrars.map((registrar) => registrar.status()),
      tunnels: tunnels.map((one) => one.status()),
      copies: copies.map((one) => one.status()),
    }),
    send: (request: OutgoingRequest) => sendThrough(tunnels, request),
    async close(): Promise<void> {
      await Promise.all([cleanup, ...registrars, ...tunnels, ...copies].map((one) => one.close()))
    },
  }
}

interface Here {
  readonly alias: (tenant: string) => string
  readonly publicUrl: string | undefined
  readonly now: number
}

function registrarSettings(
  one: RegisterSettings,
  here: Here,
): RegistrarSettings & { readonly tenant: string } {
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
    refreshMs: refreshMsOf(one),
  }
}
