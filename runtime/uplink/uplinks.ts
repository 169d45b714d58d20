/**
 * The uplinks of one tenant: those of its subscriptions whose endpoint is a broker, and those of the settings. Looks every
 * second whether one came, changed or went; one that changed goes on where it was, one that went is forgotten.
 */
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Metrics } from '#base/metrics.ts'
import type { Inside } from '#broker/tenant.ts'
import type { TenantBroker } from '#broker/types.ts'
import { originOf, probe, shownUri } from '#delivery/probe.ts'
import type { Peer } from '#federation/peer.ts'
import type { Subscription } from '#ngsi-ld/subscription.ts'
import { isActive } from '#ngsi-ld/subscription.ts'
import { type CentreSettings, createCentre, type Refusal } from './centre.ts'
import { createLink } from './link.ts'
import { selectionOf } from './selection.ts'
import { newState, readState, type UplinkState } from './state.ts'
import { createUplink, type Uplink, type UplinkStatus } from './uplink.ts'

export interface UplinksPorts {
  readonly tenant: Pick<Inside, 'name' | 'door' | 'following' | 'history' | 'uplinkStates'>
  /** Subscriptions that are uplinks now. */
  readonly subscriptions: () => Iterable<Subscription>
  readonly peer: Peer
  readonly alias: (tenant: string) => string
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

export interface Uplinks {
  /** By the ids of their subscriptions. */
  statuses(): ReadonlyMap<string, UplinkStatus>
  /** Returns false when there is no uplink of this id. */
  pause(id: string, isPaused: boolean): boolean
  close(): Promise<void>
}

interface Running {
  readonly text: string
  readonly uplink: Uplink
}

export function createUplinks(ports: UplinksPorts): Uplinks {
  const { tenant, clock, log } = ports
  const { door, following, uplinkStates } = tenant
  const running = new Map<string, Running>()
  /** Those that have a state on disk. */
  const kept = new Set(uplinkStates.ids())
  let lastRefusal = uplinkStates.lastRefusal()
  let isClosed = false
  let looking = Promise.resolve()

  const save = (id: string, state: UplinkState): Promise<void> => {
    const text = JSON.stringify(state)
    kept.add(id)
    return door.commit((stage) => stage.write('uplink.put', id, text), { urgent: false, bytes: text.length })
  }

  async function bury(id: string, refusals: readonly Refusal[]): Promise<void> {
    await door.commit((stage) => {
      for (const { step, reason } of refusals) {
        const q = ++lastRefusal
        stage.write('uplink-refusal.insert', q, id, step.entity.id, stage.at, reason, textOf(step))
      }
      stage.write('uplink-refusal.trim', lastRefusal - limits.uplinkRefusalsMax.value)
    })
    for (const { step, reason } of refusals)
      log.warn('uplink.refused', { uplink: id, entity: step.entity.id, reason })
  }

  /** A new one begins with all there is. */
  function stateOf(id: string): UplinkState {
    const text = uplinkStates.get(id)
    if (text !== undefined) return readState(text)
    const here = following.position()
    const state = newState(here, { since: 0, graves: here.n, rid: 0 })
    state.spans.push({ from: 0, to: here.at + 1 })
    return state
  }

  function open(subscription: Subscription): Uplink {
    const { id } = subscription
    const settings = centreOf(subscription, ports.alias(tenant.name))
    const shown = shownUri(settings.base)
    const address = originOf(settings.base)?.address
    const link = createLink({
      clock,
      dice: Math.random,
      probe: async () => address !== undefined && (await probe(address)),
      onChange: (isUp, reason) =>
        isUp
          ? log.info('uplink.up', { uplink: id, centre: shown })
          : log.warn('uplink.down', { uplink: id, centre: shown, reason }),
    })
    return createUplink(id, stateOf(id), selectionOf(subscription), {
      following,
      link,
      clock,
      log,
      centre: createCentre(ports.peer, settings),
      isFromThere: () => false,
      dropped: (entity, since) => droppedOf(tenant.history, entity, since),
      save: (state) => save(id, state),
      bury: (refusals) => bury(id, refusals),
    })
  }

  async function look(): Promise<void> {
    const wanted = new Map<string, Subscription>()
    for (const one of ports.subscriptions()) if (isActive(one, clock.now())) wanted.set(one.id, one)
    const known = new Set([...ports.subscriptions()].map(({ id }) => id))
    for (const [id, { text, uplink }] of [...running]) {
      if (text === JSON.stringify(wanted.get(id))) continue
      running.delete(id)
      await uplink.close()
    }
    for (const id of kept) {
      if (known.has(id)) continue
      await door.commit((stage) => stage.write('uplink.delete', id))
      kept.delete(id)
    }
    for (const [id, one] of wanted) {
      if (isClosed || running.has(id)) continue
      running.set(id, { text: JSON.stringify(one), uplink: open(one) })
    }
  }

  const timer = setInterval(() => {
    looking = looking.then(look).catch((error: unknown) => {
      log.error('gateway.fault', { during: 'uplinks', error })
    })
  }, limits.uplinksLookMs.value)
  timer.unref()
  looking = look()

  return Object.freeze({
    statuses: () => new Map([...running].map(([id, { uplink }]) => [id, uplink.status()])),
    pause(id, isPaused) {
      const one = running.get(id)
      one?.uplink.pause(isPaused)
      return one !== undefined
    },
    async close() {
      isClosed = true
      clearInterval(timer)
      await looking
      await Promise.all([...running.values()].map(({ uplink }) => uplink.close()))
    },
  } satisfies Uplinks)
}

const textOf = (step: Refusal['step']): string =>
  JSON.stringify('attributes' in step ? { ...step, attributes: Object.fromEntries(step.attributes) } : step)

/** Where a subscription goes, and with which headers (GS CIM 009, 5.2.22). */
function centreOf({ notification }: Subscription, alias: string): CentreSettings {
  const { uri, receiverInfo = [] } = notification.endpoint
  const headers = Object.fromEntries(receiverInfo.map(({ key, value }) => [key.toLowerCase(), value]))
  return { base: uri.replace(/\/+$/, ''), headers, alias, gzip: false }
}

function droppedOf(
  history: TenantBroker['history'],
  id: string,
  since: number,
): readonly (readonly [name: string, dataset: string])[] {
  const limit = limits.temporalInstancesMax.value
  const evolution = history(id, { timeproperty: 'deletedAt', timerel: 'after', timeAtMs: since, limit })
  if (evolution === undefined) return []
  return [...evolution.attributes].flatMap(([name, instances]) =>
    name === 'scope'
      ? []
      : instances
          .filter(({ deletedAt, instance }) => {
            if (deletedAt === undefined) return false
            const now = evolution.entity[name]
            const dataset = instance.datasetId
            const all = now === undefined ? [] : Array.isArray(now) ? now : [now]
            return !all.some((one) => (one as { datasetId?: string }).datasetId === dataset)
          })
          .map(({ instance }) => [name, instance.datasetId ?? ''] as const),
  )
}
