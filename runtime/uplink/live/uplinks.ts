/**
 * The uplinks of a tenant: its subscriptions with a broker as endpoint, and the uplinks of the settings. A
 * scan every second starts, restarts and stops uplinks. A changed uplink resumes where it was, but sends
 * everything if its centre or selection changed. The state of a removed uplink is deleted.
 */

import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { TenantParts } from '#broker/tenant/tenant-connections.ts'
import { originOf, probe, shownUri } from '#delivery/probe.ts'
import type { Peer } from '#federation/peer.ts'
import { isActive, type Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { brokerBase, parseUplinkOptions, type UplinkOptions } from '#ngsi-ld/subscription/uplink-options.ts'
import {
  type CentralBroker,
  type CentralBrokerSettings,
  createCentralBroker,
} from '#uplink/centre/central-broker.ts'
import { type Connectivity, createConnectivity } from '#uplink/centre/connectivity.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import { openWindows, type Windows } from '#uplink/connection/windows.ts'
import { createBacklogMeasure } from '#uplink/progress/backlog-size.ts'
import { createLosses, type Losses } from '#uplink/progress/losses.ts'
import { createRefusals } from '#uplink/progress/refusals.ts'
import { addRefusedGaps } from '#uplink/progress/refused-gaps.ts'
import { createSelectedStreams } from '#uplink/progress/selected-streams.ts'
import type { Loss } from '#uplink/progress/thinning.ts'
import { adaptState, readState, type UplinkState } from '#uplink/progress/uplink-state.ts'
import { createScopePrefix } from '#uplink/steps/scope-prefix.ts'
import { selectionHash, selectionOf } from '#uplink/steps/uplink-selection.ts'
import { createGate, type Gate } from './gate.ts'
import { createUplink, type Uplink, type UplinkSubscription } from './uplink.ts'
import { createOperations, type Operated } from './uplink-operations.ts'

export interface UplinksPorts extends Instruments {
  readonly tenant: Pick<
    TenantParts,
    'name' | 'door' | 'following' | 'digests' | 'backlog' | 'uplinkStates' | 'statistics'
  >
  /** Subscriptions that are uplinks now. */
  readonly subscriptions: () => Iterable<UplinkSubscription>
  /** Ids of the uplinks in the settings, including those that cannot start yet. */
  readonly declared: ReadonlySet<string>
  readonly peer: Peer
  readonly alias: (tenant: string) => string
}

interface Running extends Operated {
  readonly text: string
}

export type Uplinks = ReturnType<typeof createUplinks>

export function createUplinks(ports: UplinksPorts) {
  const { tenant, clock, log } = ports
  const { door, following, uplinkStates } = tenant
  const running = new Map<string, Running>()
  /** Ids with a state on disk. */
  const stored = new Set(uplinkStates.ids())
  const refusals = createRefusals({ states: uplinkStates, door, clock, log })
  let isClosed = false
  let scanning = Promise.resolve()

  /** The writes for the state and its changed losses, as both are now. */
  function stateWrites(id: string, state: UplinkState, losses: Losses) {
    const text = JSON.stringify(state)
    const { rows, onSaved: onKept } = losses.changes()
    stored.add(id)
    return {
      bytes: text.length + rows.length * lossBytes,
      onKept,
      stage(stage: Stage): void {
        stage.write('uplink.put', id, text)
        for (const [of, loss] of rows)
          if (loss === undefined) stage.write('uplink-loss.delete', id, of)
          else stage.write('uplink-loss.put', id, of, JSON.stringify(loss))
      },
    }
  }

  async function save(
    { i, subscription: { id } }: UplinkSubscription,
    state: UplinkState,
    losses: Losses,
  ): Promise<void> {
    const { bytes, stage: write, onKept } = stateWrites(id, state, losses)
    const statistics = i === undefined ? undefined : tenant.statistics.statistics(i)
    await door.commit(
      (stage) => {
        write(stage)
        if (statistics !== undefined) stage.write('subscription.stats', statistics, i!)
      },
      { urgent: false, bytes, isSparing: true },
    )
    onKept()
  }

  /** The state of an uplink; a new one starts with everything. */
  function stateOf(
    { subscription }: UplinkSubscription,
    { base, headers }: CentralBrokerSettings,
  ): { readonly state: UplinkState; readonly isNew: boolean } {
    const text = uplinkStates.get(subscription.id)
    const { scope } = parseUplinkOptions(subscription.notification.endpoint.notifierInfo)
    const before = text === undefined ? undefined : readState(text)
    const target = {
      centre: `${base} ${headers['ngsild-tenant'] ?? ''}`,
      selected: selectionHash(subscription),
    }
    const state = adaptState(before, target, following.position())
    const isNew = state !== before
    if (isNew && scope !== undefined) state.scope = scope
    return { state, isNew }
  }

  const lossesOf = (id: string): ReadonlyMap<string, Loss> =>
    new Map(uplinkStates.losses(id).map(({ of, loss }) => [of, JSON.parse(loss) as Loss]))

  async function open(one: UplinkSubscription): Promise<Uplink> {
    const { i, subscription } = one
    const { id, throttling } = subscription
    const settings = centreOf(subscription, ports.alias(tenant.name))
    const options = parseUplinkOptions(subscription.notification.endpoint.notifierInfo)
    const { state, isNew } = stateOf(one, settings)
    const scopePrefix = createScopePrefix(options.scope)
    const windows = await openWindows(options.windows)
    const { gate, connectivity } = openConnection(
      { ...ports, peer: one.peer ?? ports.peer, state, windows, isHeld: following.isHeld },
      { id, base: settings.base, options },
    )
    const selection = selectionOf(subscription)
    const selected = createSelectedStreams(following, selection, clock.monotonic)
    const measure = createBacklogMeasure({ state, backlog: tenant.backlog, clock, selected }, options)
    const losses = createLosses(
      { state, following, backlog: tenant.backlog, selection, before: lossesOf(id), isNew },
      { uplink: id, alias: settings.alias, thinMs: options.thinSeconds * 1000, scopePrefix },
    )
    const pastMayBecomeCurrent = selection.dependsOnValues
    const centreBy = (lane: Lane): CentralBroker =>
      createCentralBroker(gate.peer(lane), { ...settings, pastMayBecomeCurrent }, clock)
    return createUplink(
      id,
      state,
      { selection, throttling, scopePrefix },
      {
        following,
        digests: tenant.digests,
        connectivity,
        gate,
        losses,
        measure,
        clock,
        log,
        onCommit: door.onCommit,
        centres: { live: centreBy('live'), backfill: centreBy('backfill') },
        alias: settings.alias,
        isNew,
        onOutcome({ isOk, at, reason }) {
          if (i !== undefined) tenant.statistics.outcome(i, { ok: isOk, at, error: reason })
        },
        save: (saved) => save(one, saved, losses),
        saveRefusals: (some) =>
          refusals.add(id, some, (gone) => {
            const undo = addRefusedGaps(state, gone)
            return { stage: stateWrites(id, state, losses).stage, undo }
          }),
      },
    )
  }

  async function scan(): Promise<void> {
    const wanted = new Map<string, UplinkSubscription>()
    const known = new Set(ports.declared)
    for (const one of ports.subscriptions()) {
      known.add(one.subscription.id)
      if (isActive(one.subscription, clock.now())) wanted.set(one.subscription.id, one)
    }
    for (const [id, { text, uplink }] of [...running]) {
      if (text === JSON.stringify(wanted.get(id)?.subscription)) continue
      running.delete(id)
      await uplink.close()
    }
    for (const id of stored.difference(known)) {
      await door.commit(
        (stage) => {
          stage.write('uplink.delete', id)
          stage.write('uplink-loss.clear', id)
        },
        { isSparing: true },
      )
      await refusals.forget(id)
      stored.delete(id)
    }
    for (const [id, one] of wanted) {
      if (isClosed || running.has(id)) continue
      const centre = (): CentralBroker =>
        createCentralBroker(
          one.peer ?? ports.peer,
          centreOf(one.subscription, ports.alias(tenant.name)),
          clock,
        )
      running.set(id, { one, centre, text: JSON.stringify(one.subscription), uplink: await open(one) })
    }
  }

  const timer = setInterval(() => {
    scanning = scanning.then(scan).catch((error: unknown) => {
      log.error('gateway.fault', { during: 'uplinks', error })
    })
  }, limits.uplinksCheckMs.value)
  timer.unref()
  scanning = scan()

  return Object.freeze({
    operations: createOperations({
      ...ports,
      running,
      refusals,
      tenant: tenant.name,
      states: uplinkStates,
      alias: ports.alias(tenant.name),
    }),
    async close(): Promise<void> {
      isClosed = true
      clearInterval(timer)
      await scanning
      await Promise.all([...running.values()].map(({ uplink }) => uplink.close()))
    },
  })
}

/** Approximate size of a loss row. */
const lossBytes = 150

interface ConnectionPorts extends Pick<UplinksPorts, 'clock' | 'log' | 'peer'> {
  readonly state: UplinkState
  readonly windows: Windows
  readonly isHeld: () => boolean
}

/** Opens the connection to a centre: its connectivity and its gate. */
function openConnection(
  ports: ConnectionPorts,
  { id, base, options }: { id: string; base: string; options: UplinkOptions },
): { gate: Gate; connectivity: Connectivity } {
  const { clock, log } = ports
  const shown = shownUri(base)
  const address = originOf(base)?.address
  const connectivity = createConnectivity({
    clock,
    random: Math.random,
    probe: async () => address !== undefined && (await probe(address)),
    onChange(lane, isUp, reason) {
      const isLive = lane === 'live'
      if (isUp) log.info(isLive ? 'uplink.up' : 'uplink.history-up', { uplink: id, centre: shown })
      else log.warn(isLive ? 'uplink.down' : 'uplink.history-down', { uplink: id, centre: shown, reason })
    },
    isGateClosed: (lane) => gate.closedBy(lane) !== undefined,
  })
  const { peer, windows, state, isHeld } = ports
  const gate = createGate({ peer, clock, windows, state, isHeld, connectivity: () => connectivity }, options)
  return { gate, connectivity }
}

/** The endpoint of a subscription, and its headers (GS CIM 009, 5.2.22). */
function centreOf({ notification }: Subscription, alias: string): CentralBrokerSettings {
  const { uri, receiverInfo = [] } = notification.endpoint
  const headers = Object.fromEntries(receiverInfo.map(({ key, value }) => [key.toLowerCase(), value]))
  return { base: brokerBase(uri), headers, alias }
}
