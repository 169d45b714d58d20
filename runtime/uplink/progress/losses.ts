/**
 * Values that the budget removed from the history to be sent, counted by attribute, and the gaps that report
 * them. Counts are stored in one commit with the position behind their slice, so they are exact after a
 * crash. Only changed counts are written, each in a row of its own.
 */
import { limits } from '#base/limits/limits.ts'
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { CommittedPart } from '#broker/history/committed-part.ts'
import type { UnfoldedBacklog } from '#broker/upkeep/unfolded-backlog.ts'
import type { ScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Level } from './budget.ts'
import { type EvictedPorts, evictedGaps } from './evicted-gaps.ts'
import { type GapPage, gapPrefix, gapStep } from './gap-step.ts'
import { keptOf, type Loss, type Timed } from './thinning.ts'
import { type GapReport, pendingSince } from './uplink-state.ts'

/** A row to write: a loss by its key, or undefined once it is reported. */
export type LossRow = readonly [of: string, loss: Loss | undefined]

export interface LossesPorts extends EvictedPorts {
  /** Losses on disk when the uplink opened. */
  readonly before: ReadonlyMap<string, Loss>
  /** Whether the uplink has a new centre, so that earlier losses are discarded. */
  readonly isNew: boolean
  readonly following: Pick<ChangeFeed, 'streamOf' | 'lastState' | 'attributeOf' | 'since'>
  readonly backlog: Pick<UnfoldedBacklog, 'gapsSince' | 'gapsUnread' | 'gapSums' | 'firstGap' | 'follow'>
}

export type Losses = ReturnType<typeof createLosses>

export function createLosses(
  ports: LossesPorts,
  {
    uplink,
    alias,
    thinMs,
    scopePrefix,
  }: { uplink: string; alias: string; thinMs: number; scopePrefix: ScopePrefix },
) {
  const { state, following } = ports
  const rule = { prefix: gapPrefix(alias, uplink), alias, scopePrefix }
  const close = ports.backlog.follow(() => pendingSince(state, following.since(state.position)))
  const losses = new Map(ports.isNew ? [] : ports.before)
  /** Keys whose row on disk is missing or outdated. */
  const changed = new Set(ports.isNew ? ports.before.keys() : [])
  /** Losses of the slice being sent; undefined when they must not be reported. */
  let slice: Map<number, Loss> | undefined
  let writtenFrom = 0
  /** How often `forget` was called. */
  let forgetCount = 0

  function add(s: number, loss: Loss): void {
    const named = `${s} ${loss.reason}`
    const hasRoom = losses.has(named) || losses.size < limits.uplinkLossesMax.value
    const of = hasRoom ? named : `${unattributed} ${loss.reason}`
    const before = losses.get(of)
    losses.set(of, before === undefined ? loss : sumOf(before, loss))
    changed.add(of)
  }

  function* ownGaps({ to }: GapReport): Generator<GapPage> {
    for (;;) {
      const some = losses.entries().take(limits.uplinkEntitiesPerRequest.value).toArray()
      if (some.length === 0) return
      const steps = some.map(([of, loss]) => {
        const s = Number.parseInt(of, 10)
        // The owner is unknown when the entity left no record.
        const stream = following.streamOf(s)
        // A device may repeat the same times, so each span has gap ids of its own.
        const id = `${rule.prefix}:${s}-${loss.reason === 'thinned' ? 't' : ''}${loss.from}-${to}`
        return gapStep(id, { id: stream?.id, stream, alias, scopePrefix }, loss)
      })
      const before = forgetCount
      yield {
        steps,
        isValid: () => forgetCount === before,
        onAccepted() {
          for (const [of] of some) {
            losses.delete(of)
            changed.add(of)
          }
        },
      }
    }
  }

  return Object.freeze({
    /** Ends the claim on records of the history. */
    close,
    /** Begins a slice whose first commit time is `writtenFrom` (ms). */
    begin(from: number): void {
      slice = new Map()
      writtenFrom = from
    },
    /** The minimum slice length: thinned slices must be long compared with the thinning period. */
    leastSliceMs: (level: Level) => (level === 'full' ? 0 : 10 * thinMs),
    /** Selects which values of a stream's part are sent in the current slice. */
    keep(part: Timed & Pick<CommittedPart, 's'>, places: readonly number[], level: Level): readonly number[] {
      if (level === 'full') return places
      const { kept, lost } = keptOf(part, places, { level, thinMs })
      if (lost !== undefined) slice?.set(part.s, lost)
      return kept
    },
    /** Ends a slice that was sent up to a commit time (ms); its losses are stored with the new position. */
    end(writtenBefore: number): void {
      for (const [s, lost] of slice ?? []) {
        add(s, { ...lost, writtenFrom, writtenBefore })
        state.counts.evicted += lost.count
      }
      slice = undefined
    },
    /**
     * Discards unreported losses. After the centre was restored from an older copy, nobody can count what is
     * missing; a reconciliation sends all of it.
     */
    forget(): void {
      for (const [of, { count }] of losses) {
        changed.add(of)
        state.counts.evicted -= count
      }
      losses.clear()
      slice = undefined
      forgetCount++
    },
    /**
     * The gaps of a span that was sent, page by page; each page is read after the previous one was accepted.
     */
    *gaps(report: GapReport): Iterable<GapPage> {
      yield* ownGaps(report)
      yield* evictedGaps(ports, rule, report)
    },
    /** Rows to store with the state; the caller calls `onSaved` once they are on disk. */
    changes(): { readonly rows: readonly LossRow[]; onSaved(): void } {
      const rows = [...changed].map((of): LossRow => [of, losses.get(of)])
      return {
        rows,
        onSaved() {
          // Rows that changed during the commit stay marked.
          for (const [of, loss] of rows) if (losses.get(of) === loss) changed.delete(of)
        },
      }
    },
  })
}

/** Stream number under which losses beyond the limit are summed; no stream has it. */
const unattributed = 0

const sumOf = (one: Loss, other: Loss): Loss => ({
  from: Math.min(one.from, other.from),
  to: Math.max(one.to, other.to),
  count: one.count + other.count,
  reason: one.reason,
  writtenFrom: Math.min(one.writtenFrom ?? 0, other.writtenFrom ?? 0),
  writtenBefore: Math.max(one.writtenBefore ?? 0, other.writtenBefore ?? 0),
})
