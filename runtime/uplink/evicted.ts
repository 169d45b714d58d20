/**
 * Gaps of what the history here let go before it had gone up, told to the other broker. An entity is named only where it is
 * selected as it is, or was last; what cannot be known to have been selected is told as one sum without an entity, so nothing
 * that vanished goes untold, and nobody learns of entities that are none of theirs.
 */
import type { Backlog } from '#broker/backlog.ts'
import type { Following } from '#broker/following.ts'
import type { Entity } from '#ngsi-ld/entity.ts'
import type { GapReason, OwnedGapRow } from '#store/retention.ts'
import { gapStep } from './gap-step.ts'
import type { Placing } from './placing.ts'
import type { Step } from './plan.ts'
import type { UplinkSelection } from './selection.ts'
import type { UplinkState } from './state.ts'

export interface EvictedPorts {
  readonly state: UplinkState
  readonly following: Pick<Following, 'standing' | 'partOf'>
  readonly backlog: Pick<Backlog, 'gapsBehind' | 'gapSums'>
  readonly selection: UplinkSelection
}

type Known = Pick<Entity, 'id' | 'type'>

/** What went of whom nobody can name. */
interface Sum {
  from: number
  to: number
  count: number
  at: number
}

/** What is to be told of a span that began at a commit time (ms); `told` is to be called then. */
export function evictedGaps(
  { state, following, backlog, selection }: EvictedPorts,
  { prefix, alias, placing }: { readonly prefix: string; readonly alias: string; readonly placing: Placing },
  began: number,
): { readonly steps: readonly Step[]; told(): void } {
  const rows = backlog.gapsBehind(state.gap, began)
  const summed = backlog.gapSums()
  const everything = { id: undefined, stream: undefined, alias, placing }
  const sums = new Map<string, Sum>()
  const addUp = (reason: string, { t0, t1, at }: Pick<OwnedGapRow, 't0' | 't1' | 'at'>, count: number) => {
    const sum = sums.get(reason) ?? { from: t0, to: t1, count: 0, at }
    sums.set(reason, {
      from: Math.min(sum.from, t0),
      to: Math.max(sum.to, t1),
      count: sum.count + count,
      at: Math.max(sum.at, at),
    })
  }

  /** Whether it goes up, by its id, as one of those that cannot be named, or not at all. */
  function nameable(head: Known | undefined, whole: Entity | undefined): 'named' | 'unnamed' | 'left' {
    if (head === undefined) return 'unnamed'
    if (!selection.mayTake(head)) return 'left'
    const isSelected = !selection.dependsOnValues || (whole !== undefined && selection.takes(whole))
    return isSelected ? 'named' : 'unnamed'
  }

  const steps = rows.flatMap((row): Step[] => {
    const { s, rid, t0: from, t1: to, count, reason, since } = row
    // A time that a backup lacks, of everything: nobody knows what it held.
    if (reason === 'restore') return [gapStep(`${prefix}:restore-${from}`, everything, { from, to, reason })]
    const stream = s === 0 ? undefined : following.partOf(s)
    if (stream !== undefined && !selection.takesAttribute(stream.name)) return []
    const whole = following.standing(rid)
    const head = whole ?? (row.owner === null ? undefined : (JSON.parse(row.owner) as Known))
    const stands = nameable(head, whole)
    if (stands === 'unnamed') addUp(reason, row, count)
    if (stands !== 'named') return []
    const of = { id: head!.id, stream, alias, placing }
    return [
      gapStep(`${prefix}:kept-${s === 0 ? `r${rid}` : s}-${since}`, of, {
        ...{ from, to, count, reason, atMost: true },
      }),
    ]
  })
  for (const row of summed) {
    const count = row.count - (state.summed?.[row.reason as GapReason] ?? 0)
    if (count > 0 && row.m1 >= began) addUp(row.reason, row, count)
  }
  const unnamed = [...sums].map(([reason, { from, to, count, at }]) =>
    gapStep(`${prefix}:kept-${reason}-${at}`, everything, { from, to, count, reason, atMost: true }),
  )
  return {
    steps: [...steps, ...unnamed],
    told() {
      state.gap = rows.at(-1)?.g ?? state.gap
      state.summed = Object.fromEntries(summed.map(({ reason, count }) => [reason, count]))
    },
  }
}
