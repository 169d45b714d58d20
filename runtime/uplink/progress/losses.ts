/**
 * What of the past did not go up: how many values of each attribute were let go, and what is told of them. Counts are put on
 * disk together with the position behind their slice, so they are right after a crash: those that changed, each in a row of its own.
 */
import { limits } from '#base/limits/limits.ts'
import type { Following } from '#broker/changes/change-feed.ts'
import type { CommittedPart } from '#broker/history/committed-part.ts'
import type { Backlog } from '#broker/upkeep/unfolded-backlog.ts'
import type { ScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Level } from './budget.ts'
import { type EvictedPorts, evictedGaps } from './evicted-gaps.ts'
import { type GapPage, gapPrefix, gapStep } from './gap-step.ts'
import { keptOf, type Loss, type Timed } from './thinning.ts'
import { type GapReport, pendingSince } from './uplink-state.ts'

/** What is to be put on disk: a loss by its key, undefined where it was told. */
export type LossRow = readonly [of: string, loss: Loss | undefined]

export interface LossesPorts extends EvictedPorts {
  /** What was lost before, as it is on disk. */
  readonly before: ReadonlyMap<string, Loss>
  /** Nothing of that is owed any more, because all goes to another broker. */
  readonly isNew: boolean
  readonly following: Pick<Following, 'streamOf' | 'standing' | 'partOf' | 'since'>
  readonly backlog: Pick<Backlog, 'gapsBehind' | 'gapsOwed' | 'gapSums' | 'firstGap' | 'owe'>
}

export interface Losses {
  /** Which of some places of a stream's part go up, in a slice that begins anew. */
  keep(part: Timed & Pick<CommittedPart, 's'>, places: readonly number[], level: Level): readonly number[]
  /** A slice begins with what was written at a commit time (ms). */
  begin(writtenFrom: number): void
  /** What is thinned goes up in slices that are long beside its periods. */
  leastSliceMs(level: Level): number
  /** The slice up to a commit time (ms) has gone up: what it lost is to be put on disk with the position behind it. */
  end(writtenBefore: number): void
  /**
   * What was lost and is not told yet will not be: what went up between may be gone with an older copy over there, so nobody
   * can say how much is missing. A comparison tells all of it.
   */
  forget(): void
  /** What is to be told of a span that has gone up, page by page; each is read when the one before it was told. */
  gaps(telling: GapReport): Iterable<GapPage>
  /** What is to be put on disk with the state; `kept` is to be called when it is there. */
  changes(): { readonly rows: readonly LossRow[]; onSaved(): void }
  /** Nobody is owed anything any more. */
  close(): void
}

export function createLosses(
  ports: LossesPorts,
  {
    uplink,
    alias,
    thinMs,
    scopePrefix,
  }: { uplink: string; alias: string; thinMs: number; scopePrefix: ScopePrefix },
): Losses {
  const { state, following } = ports
  const rule = { prefix: gapPrefix(alias, uplink), alias, scopePrefix }
  const close = ports.backlog.owe(() => pendingSince(state, following.since(state.position)))
  const losses = new Map(ports.isNew ? [] : ports.before)
  /** Those that are on disk otherwise, or not. */
  const changed = new Set(ports.isNew ? ports.before.keys() : [])
  /** Of the slice that goes up; undefined when it is not to be told. */
  let slice: Map<number, Loss> | undefined
  let writtenFrom = 0
  /** How often all was forgotten. */
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
        // Where the entity left no trace since, nobody can say whose it was.
        const stream = following.streamOf(s)
        // Devices may tell the same times again: each span has gaps of its own.
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
    close,
    begin(from) {
      slice = new Map()
      writtenFrom = from
    },
    leastSliceMs: (level) => (level === 'full' ? 0 : 10 * thinMs),
    keep(part, places, level) {
      if (level === 'full') return places
      const { kept, lost } = keptOf(part, places, { level, thinMs })
      if (lost !== undefined) slice?.set(part.s, lost)
      return kept
    },
    end(writtenBefore) {
      for (const [s, lost] of slice ?? []) {
        add(s, { ...lost, writtenFrom, writtenBefore })
        state.counts.evicted += lost.count
      }
      slice = undefined
    },
    forget() {
      for (const [of, { count }] of losses) {
        changed.add(of)
        state.counts.evicted -= count
      }
      losses.clear()
      slice = undefined
      forgetCount++
    },
    *gaps(telling) {
      yield* ownGaps(telling)
      yield* evictedGaps(ports, rule, telling)
    },
    changes() {
      const rows = [...changed].map((of): LossRow => [of, losses.get(of)])
      return {
        rows,
        onSaved() {
          // What changed meanwhile is still to come.
          for (const [of, loss] of rows) if (losses.get(of) === loss) changed.delete(of)
        },
      }
    },
  } satisfies Losses)
}

/** For whom beyond their ceiling losses are added up; no stream has this number. */
const unattributed = 0

const sumOf = (one: Loss, other: Loss): Loss => ({
  from: Math.min(one.from, other.from),
  to: Math.max(one.to, other.to),
  count: one.count + other.count,
  reason: one.reason,
  writtenFrom: Math.min(one.writtenFrom ?? 0, other.writtenFrom ?? 0),
  writtenBefore: Math.max(one.writtenBefore ?? 0, other.writtenBefore ?? 0),
})
