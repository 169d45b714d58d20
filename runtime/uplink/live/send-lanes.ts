/**
 * Sends layers by the lanes until they are taken, each lane in its order, and counts what became of them. What the other broker
 * fails at of the past, the live lane does not wait for: it is owed to the backfill lane from then on, as part of the history.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Span } from '#broker/changes/change-feed.ts'
import { type Centre, partsOf } from '#uplink/centre/central-broker.ts'
import type { Connectivity } from '#uplink/centre/connectivity.ts'
import { later, type Outcome, type Refusal } from '#uplink/centre/outcome.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import { addPendingInFull, type UplinkState } from '#uplink/progress/uplink-state.ts'
import type { ScopeLookups } from '#uplink/steps/deletion-steps.ts'
import { splitStale } from '#uplink/steps/stale-puts.ts'
import { instanceCount, type Layer, layersOf, type Step } from '#uplink/steps/step-plan.ts'
import type { Gate } from './gate.ts'

export interface SendingPorts {
  readonly state: UplinkState
  /** The other broker, by the way of each lane. */
  readonly centres: Readonly<Record<Lane, Centre>>
  readonly gate: Gate
  readonly connectivity: Connectivity
  readonly clock: Clock
  /** Something was taken, or not. */
  readonly onOutcome: (what: { isOk: boolean; at: number; reason: string | undefined }) => void
  readonly lookups: ScopeLookups
  /** Puts on disk what will not be taken. */
  readonly saveRefusals: (refusals: readonly Refusal[]) => Promise<void>
  /** Asks the other broker how far it is, where that is not known. */
  readonly checkCentre: () => Promise<unknown>
  /** The state is another one now. */
  readonly onChanged: () => void
}

export interface Sending {
  /**
   * Sends until it was taken. False when the uplink was closed meanwhile. `isStill` is asked before each try of what may become
   * untrue: with false nothing is sent, with undefined, where it cannot be told now, it is asked again later.
   */
  deliver(lane: Lane, layer: Layer, isValid?: () => Promise<boolean | undefined>): Promise<boolean>
  /** The same of steps by the live lane. `dated` are the commit times of all of them, where they are changes of the log. */
  deliverAll(steps: readonly Step[], commitSpan?: Span): Promise<boolean>
  /** Learns what the other broker calls itself in Via. False when the uplink was closed meanwhile. */
  learnCentreName(): Promise<boolean>
}

/** What is told as current, read at a monotonic time (ms). */
interface AgedRead {
  readonly readAt: number
  enqueue(layers: readonly Layer[]): void
}

/** What is looked at before each try. */
interface SendChecks {
  readonly read?: AgedRead
  readonly isValid?: (() => Promise<boolean | undefined>) | undefined
}

export function createSending(ports: SendingPorts): Sending {
  const { state, centres, gate, connectivity, clock, onChanged } = ports
  const { counts } = state
  let hasCentreName = false

  function record(what: UplinkState['last']): void {
    state.last = { ...state.last, ...what }
    ports.onOutcome({ isOk: what.success !== undefined, at: clock.now(), reason: what.reason })
    onChanged()
  }

  function recordFailure(lane: Lane, outcome: Outcome & { kind: 'later' }): void {
    connectivity.failed(lane, outcome)
    record({ failure: clock.now(), reason: outcome.reason })
  }

  async function recordAccepted(
    lane: Lane,
    layer: Layer,
    outcome: Outcome & { kind: 'done' },
  ): Promise<void> {
    record({ success: clock.now() })
    gate.accepted(
      lane,
      layer.steps.reduce((sum, step) => sum + instanceCount(step), 0),
    )
    counts.skipped += outcome.skipped
    counts.refused += outcome.refused.length
    // A long history is several requests, each of which may have been for nothing.
    const count = Math.max(0, layer.steps.length - outcome.refused.length - outcome.skipped)
    if (layer.kind === 'past') counts.past += count
    else counts.sent += count
    if (outcome.refused.length > 0) await ports.saveRefusals(outcome.refused)
    onChanged()
  }

  /** Who was away until now says how far it is before it is told anything. */
  async function checkBeforeFirst(): Promise<void> {
    if (counts.sent + counts.past === 0) await ports.checkCentre()
  }

  /** `late` takes the layers that are to be sent instead of one that was read long ago. */
  async function deliver(lane: Lane, layer: Layer, { read, isValid }: SendChecks): Promise<boolean> {
    while (await connectivity.ready(lane)) {
      await checkBeforeFirst()
      const is = isValid === undefined || (await isValid())
      if (is === false) return true
      if (is === undefined) {
        if (!connectivity.isClosed()) recordFailure(lane, later('it does not say how far it is'))
        continue
      }
      const others = read === undefined ? undefined : await replacementFor(layer, read)
      if (others !== undefined) {
        read!.enqueue(others)
        return true
      }
      const outcome = await centres[lane].send(layer, read && limits.uplinkBehindMs.value)
      if (outcome.kind === 'later' && outcome.isHeldUp === true) continue
      if (outcome.kind === 'done') {
        connectivity.succeeded(lane)
        await recordAccepted(lane, layer, outcome)
        return true
      }
      if (connectivity.isClosed()) break
      recordFailure(lane, outcome)
    }
    return false
  }

  /**
   * Where it is not told whose something is, what is written over there long after it went here would be taken for that of others.
   */
  async function replacementFor(layer: Layer, { readAt }: AgedRead): Promise<readonly Layer[] | undefined> {
    if (layer.kind !== 'put' || clock.monotonic() - readAt <= limits.uplinkBehindMs.value) return undefined
    if ((await centres.live.isSelvedge()) === true) return undefined
    return splitStale(layer, ports.lookups)
  }

  /** Sends what is past once, where that is taken now. Returns whether it was; of a closed uplink nothing is. */
  async function tryPast(layer: Layer): Promise<boolean> {
    if (connectivity.trouble('backfill') !== undefined || !(await connectivity.ready('live'))) return false
    await checkBeforeFirst()
    const outcome = await centres.live.send(layer)
    if (outcome.kind === 'done') await recordAccepted('live', layer, outcome)
    else if (!connectivity.isClosed()) recordFailure('backfill', outcome)
    return outcome.kind === 'done'
  }

  return Object.freeze({
    deliver: (lane, layer, isValid) => deliver(lane, layer, { isValid }),
    async deliverAll(steps, dated) {
      let hasPendingPast = false
      const layers = layersOf(steps).flatMap(requestsOf)
      const readAt = clock.monotonic()
      // What is current is told whole by itself: its past goes up by the other lane.
      const enqueue = (some: readonly Layer[]): void => {
        layers.unshift(...some.filter(({ kind }) => kind === 'put' || dated !== undefined))
      }
      for (let layer = layers.shift(); layer !== undefined; layer = layers.shift()) {
        const isTaken =
          layer.kind === 'past' && dated !== undefined
            ? await tryPast(layer)
            : await deliver('live', layer, { read: { readAt, enqueue } })
        if (isTaken) continue
        if (dated === undefined || connectivity.isClosed()) return false
        hasPendingPast = true
      }
      // At the end: who fills it in passes nothing of it that is still to be told as current.
      if (hasPendingPast) {
        addPendingInFull(state, dated!)
        onChanged()
      }
      return true
    },
    async learnCentreName() {
      while (!hasCentreName && (await connectivity.ready('live'))) {
        const answer = await centres.live.pseudonym()
        if ('kind' in answer) {
          connectivity.failed('live', answer)
          continue
        }
        state.pseudonym = answer.name
        hasCentreName = true
      }
      return hasCentreName
    },
  } satisfies Sending)
}

/** Each of what is put by itself, since it is looked at before it is sent. */
const requestsOf = (layer: Layer): readonly Layer[] =>
  layer.kind === 'put' ? partsOf(layer.steps).map((steps) => ({ ...layer, steps })) : [layer]
