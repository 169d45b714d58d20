/**
 * Sends layers by the lanes until they are taken, each lane in its order, and counts what became of them. What the other broker
 * fails at of the past, the live lane does not wait for: it is owed to the backfill lane from then on, as part of the history.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Span } from '#broker/changes/change-feed.ts'
import { type Centre, partsOf } from '#uplink/centre/central-broker.ts'
import type { Link } from '#uplink/centre/connectivity.ts'
import { later, type Outcome, type Refusal } from '#uplink/centre/outcome.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import { oweWhole, type UplinkState } from '#uplink/progress/uplink-state.ts'
import type { PlacingPorts } from '#uplink/steps/deletion-steps.ts'
import { withoutGone } from '#uplink/steps/stale-puts.ts'
import { instanceCount, type Layer, layersOf, type Step } from '#uplink/steps/step-plan.ts'
import type { Gate } from './gate.ts'

export interface SendingPorts {
  readonly state: UplinkState
  /** The other broker, by the way of each lane. */
  readonly centres: Readonly<Record<Lane, Centre>>
  readonly gate: Gate
  readonly link: Link
  readonly clock: Clock
  /** Something was taken, or not. */
  readonly told: (what: { isOk: boolean; at: number; reason: string | undefined }) => void
  readonly reading: PlacingPorts
  /** Puts on disk what will not be taken. */
  readonly bury: (refusals: readonly Refusal[]) => Promise<void>
  /** Asks the other broker how far it is, where that is not known. */
  readonly look: () => Promise<unknown>
  /** The state is another one now. */
  readonly onChanged: () => void
}

export interface Sending {
  /**
   * Sends until it was taken. False when the uplink was closed meanwhile. `isStill` is asked before each try of what may become
   * untrue: with false nothing is sent, with undefined, where it cannot be told now, it is asked again later.
   */
  deliver(lane: Lane, layer: Layer, isStill?: () => Promise<boolean | undefined>): Promise<boolean>
  /** The same of steps by the live lane. `dated` are the commit times of all of them, where they are changes of the log. */
  deliverAll(steps: readonly Step[], dated?: Span): Promise<boolean>
  /** Learns what the other broker calls itself in Via. False when the uplink was closed meanwhile. */
  knowCentre(): Promise<boolean>
}

/** What is told as current, read at a monotonic time (ms). */
interface Late {
  readonly readAt: number
  take(layers: readonly Layer[]): void
}

/** What is looked at before each try. */
interface Cares {
  readonly late?: Late
  readonly isStill?: (() => Promise<boolean | undefined>) | undefined
}

export function createSending(ports: SendingPorts): Sending {
  const { state, centres, gate, link, clock, onChanged } = ports
  const { counts } = state
  let knowsCentre = false

  function note(what: UplinkState['last']): void {
    state.last = { ...state.last, ...what }
    ports.told({ isOk: what.success !== undefined, at: clock.now(), reason: what.reason })
    onChanged()
  }

  function failed(lane: Lane, outcome: Outcome & { kind: 'later' }): void {
    link.failed(lane, outcome)
    note({ failure: clock.now(), reason: outcome.reason })
  }

  async function taken(lane: Lane, layer: Layer, outcome: Outcome & { kind: 'done' }): Promise<void> {
    note({ success: clock.now() })
    gate.taken(
      lane,
      layer.steps.reduce((sum, step) => sum + instanceCount(step), 0),
    )
    counts.skipped += outcome.skipped
    counts.refused += outcome.refused.length
    // A long history is several requests, each of which may have been for nothing.
    const count = Math.max(0, layer.steps.length - outcome.refused.length - outcome.skipped)
    if (layer.kind === 'past') counts.past += count
    else counts.sent += count
    if (outcome.refused.length > 0) await ports.bury(outcome.refused)
    onChanged()
  }

  /** Who was away until now says how far it is before it is told anything. */
  async function meet(): Promise<void> {
    if (counts.sent + counts.past === 0) await ports.look()
  }

  /** `late` takes the layers that are to be sent instead of one that was read long ago. */
  async function deliver(lane: Lane, layer: Layer, { late, isStill }: Cares): Promise<boolean> {
    while (await link.ready(lane)) {
      await meet()
      const is = isStill === undefined || (await isStill())
      if (is === false) return true
      if (is === undefined) {
        if (!link.isClosed()) failed(lane, later('it does not say how far it is'))
        continue
      }
      const others = late === undefined ? undefined : await insteadOf(layer, late)
      if (others !== undefined) {
        late!.take(others)
        return true
      }
      const outcome = await centres[lane].send(layer, late && limits.uplinkBehindMs.value)
      if (outcome.kind === 'later' && outcome.isHeldUp === true) continue
      if (outcome.kind === 'done') {
        link.succeeded(lane)
        await taken(lane, layer, outcome)
        return true
      }
      if (link.isClosed()) break
      failed(lane, outcome)
    }
    return false
  }

  /**
   * Where it is not told whose something is, what is written over there long after it went here would be taken for that of others.
   */
  async function insteadOf(layer: Layer, { readAt }: Late): Promise<readonly Layer[] | undefined> {
    if (layer.kind !== 'put' || clock.monotonic() - readAt <= limits.uplinkBehindMs.value) return undefined
    if ((await centres.live.isSelvedge()) === true) return undefined
    return withoutGone(layer, ports.reading)
  }

  /** Sends what is past once, where that is taken now. Returns whether it was; of a closed uplink nothing is. */
  async function tryPast(layer: Layer): Promise<boolean> {
    if (link.trouble('backfill') !== undefined || !(await link.ready('live'))) return false
    await meet()
    const outcome = await centres.live.send(layer)
    if (outcome.kind === 'done') await taken('live', layer, outcome)
    else if (!link.isClosed()) failed('backfill', outcome)
    return outcome.kind === 'done'
  }

  return Object.freeze({
    deliver: (lane, layer, isStill) => deliver(lane, layer, { isStill }),
    async deliverAll(steps, dated) {
      let owesPast = false
      const layers = layersOf(steps).flatMap(requestsOf)
      const readAt = clock.monotonic()
      // What is current is told whole by itself: its past goes up by the other lane.
      const take = (some: readonly Layer[]): void => {
        layers.unshift(...some.filter(({ kind }) => kind === 'put' || dated !== undefined))
      }
      for (let layer = layers.shift(); layer !== undefined; layer = layers.shift()) {
        const isTaken =
          layer.kind === 'past' && dated !== undefined
            ? await tryPast(layer)
            : await deliver('live', layer, { late: { readAt, take } })
        if (isTaken) continue
        if (dated === undefined || link.isClosed()) return false
        owesPast = true
      }
      // At the end: who fills it in passes nothing of it that is still to be told as current.
      if (owesPast) {
        oweWhole(state, dated!)
        onChanged()
      }
      return true
    },
    async knowCentre() {
      while (!knowsCentre && (await link.ready('live'))) {
        const answer = await centres.live.pseudonym()
        if ('kind' in answer) {
          link.failed('live', answer)
          continue
        }
        state.pseudonym = answer.name
        knowsCentre = true
      }
      return knowsCentre
    },
  } satisfies Sending)
}

/** Each of what is put by itself, since it is looked at before it is sent. */
const requestsOf = (layer: Layer): readonly Layer[] =>
  layer.kind === 'put' ? partsOf(layer.steps).map((steps) => ({ ...layer, steps })) : [layer]
