/**
 * Gaps for history that retention evicted here before it was sent. An entity is named only if it is selected
 * now, or was when deleted. Other losses are reported as one sum without an entity, so none goes unreported
 * and no foreign entity is disclosed. Records are read page by page and the progress is part of the state;
 * records that change meanwhile appear again later.
 */
import { limits } from '#base/limits/limits.ts'
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { UnfoldedBacklog } from '#broker/upkeep/unfolded-backlog.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { GapReason, OwnedGapRow } from '#store/history/oldest-parts.ts'
import type { ScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import type { UplinkSelection } from '#uplink/steps/uplink-selection.ts'
import { type GapPage, gapStep } from './gap-step.ts'
import type { GapReport, UnnamedLoss, UplinkState } from './uplink-state.ts'

export interface EvictedPorts {
  readonly state: UplinkState
  readonly following: Pick<ChangeFeed, 'lastState' | 'attributeOf'>
  readonly backlog: Pick<UnfoldedBacklog, 'gapsSince' | 'gapsUnread' | 'gapSums' | 'firstGap'>
  readonly selection: UplinkSelection
}

export interface EvictedRule {
  /** Prefix of the gap ids. */
  readonly prefix: string
  readonly alias: string
  readonly scopePrefix: ScopePrefix
}

type Known = Pick<Entity, 'id' | 'type'>

const ownerIn = ({ owner }: OwnedGapRow): Known | undefined =>
  owner === null ? undefined : (JSON.parse(owner) as Known)

/** The gaps of a span, page by page; each page is read after the previous one was accepted. */
export function* evictedGaps(ports: EvictedPorts, rule: EvictedRule, report: GapReport): Generator<GapPage> {
  const { state, following, backlog, selection } = ports
  const { prefix, alias, scopePrefix } = rule
  const most = limits.uplinkEntitiesPerRequest.value

  function pageOf(rows: readonly OwnedGapRow[]): GapPage {
    const unnamed: { [reason: string]: UnnamedLoss } = { ...report.unnamed }
    const addUp = (reason: string, { t0, t1 }: Pick<OwnedGapRow, 't0' | 't1'>, count: number) => {
      const sum = unnamed[reason] ?? { from: t0, to: t1, count: 0 }
      unnamed[reason] = { from: Math.min(sum.from, t0), to: Math.max(sum.to, t1), count: sum.count + count }
    }

    /** Whether a loss is reported with its entity id, in the sum without one, or not at all. */
    function naming(head: Known | undefined, whole: Entity | undefined): 'named' | 'unnamed' | 'left' {
      if (head === undefined) return 'unnamed'
      if (!selection.mayTake(head)) return 'left'
      const isSelected = !selection.dependsOnValues || (whole !== undefined && selection.takes(whole))
      return isSelected ? 'named' : 'unnamed'
    }

    const pendingFrom = state.spans[0]?.began ?? state.spans[0]?.from ?? Number.POSITIVE_INFINITY
    const steps = rows.flatMap((row): Step[] => {
      const { s, rid, t0: from, t1: to, count, reason, since } = row
      // A period missing from a backup affects all streams; its content is unknown.
      if (reason === 'restore') {
        const everything = { id: undefined, stream: undefined, alias, scopePrefix }
        return [gapStep(`${prefix}:restore-${from}`, everything, { from, to, reason })]
      }
      // Gaps of a pending span are reported with that span.
      if (report.again !== undefined && row.g > state.gap && row.m1 >= pendingFrom) return []
      const stream = s === 0 ? undefined : following.attributeOf(s)
      if (stream !== undefined && !selection.takesAttribute(stream.name)) return []
      const whole = following.lastState(rid)
      const head = whole ?? ownerIn(row)
      const named = naming(head, whole)
      if (named === 'unnamed') addUp(reason, row, count)
      if (named !== 'named') return []
      const of = { id: head!.id, stream, alias, scopePrefix }
      const id = `${prefix}:kept-${s === 0 ? `r${rid}` : s}-${since}`
      return [gapStep(id, of, { from, to, count, reason, atMost: true })]
    })
    // Sums have no records of their own, so they are not sent again.
    const summed = report.again === undefined ? backlog.gapSums() : []
    // The oldest records are merged into the sums: if a reported record remains, everything in the sums was
    // reported.
    const isNew = (backlog.firstGap() ?? Number.POSITIVE_INFINITY) > state.gap
    for (const row of isNew ? summed : []) {
      const count = row.count - (state.summed?.[row.reason as GapReason] ?? 0)
      if (count > 0 && row.m1 >= report.began) addUp(row.reason, row, count)
    }
    return {
      steps,
      onAccepted() {
        const last = rows.at(-1)?.g
        report.unnamed = unnamed
        if (report.again !== undefined) report.again = last ?? report.again
        else {
          state.gap = last ?? state.gap
          state.summed = Object.fromEntries(summed.map(({ reason, count }) => [reason, count]))
        }
      },
    }
  }

  for (let isLast = false; !isLast; ) {
    const rows =
      report.again === undefined
        ? backlog.gapsSince(state.gap, report.began, most)
        : backlog.gapsUnread(report.again, state.gapsBefore ?? 0, most)
    isLast = rows.length < most
    yield pageOf(rows)
  }
  const steps = Object.entries(report.unnamed).map(([reason, sum]) =>
    gapStep(
      `${prefix}:kept-${reason}-${report.to}`,
      { id: undefined, stream: undefined, alias, scopePrefix },
      { ...sum, reason, atMost: true },
    ),
  )
  yield {
    steps,
    onAccepted() {
      report.unnamed = {}
      if (report.began === 0) state.gapsBefore = Math.max(state.gapsBefore ?? 0, report.to)
      state.telling = undefined
    },
  }
}
