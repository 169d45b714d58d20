/**
 * What of the past does not go up: which values of a slice are let go at the level of its span, how many of each attribute
 * that were, and the entities of type HistoryGap by which the other broker is told. Counts become part of the state together
 * with the position behind their slice, so they are right after a crash; the ids of gaps are made of what they tell.
 */
import { hash } from 'node:crypto'
import type { Backlog } from '#broker/backlog.ts'
import type { CommittedPart } from '#broker/committed-part.ts'
import type { FollowedStream, Following } from '#broker/following.ts'
import type { Json } from '#contract/pipeline.ts'
import { msToDateTime } from '#ngsi-ld/datetime.ts'
import type { AttributeInstance } from '#ngsi-ld/entity.ts'
import type { Level } from './budget.ts'
import type { Placing } from './placing.ts'
import type { Step } from './plan.ts'
import type { UplinkSelection } from './selection.ts'
import type { UplinkState } from './state.ts'

/** What is missing of an attribute: times of the first and the last (ms), and how many. */
export interface Loss {
  readonly from: number
  readonly to: number
  readonly count: number
  readonly reason: 'thinned' | 'budget'
}

export const gapType = 'HistoryGap'

/** With which the ids of the gaps that an uplink tells begin. */
export const gapPrefix = (alias: string, uplink: string): string =>
  `urn:ngsi-ld:${gapType}:${alias}:${hash('sha1', uplink).slice(0, 8)}`

/** Values in the order of their times. */
export type Timed = Pick<CommittedPart, 'timeAt' | 'valueAt'>

/** Which of some values, told by their ascending places, go up, and what does not. */
export function keptOf(
  values: Timed,
  places: readonly number[],
  { level, thinMs }: { readonly level: Level; readonly thinMs: number },
): { readonly kept: readonly number[]; readonly lost: Loss | undefined } {
  const lost: number[] = []
  const kept = places.filter((place, i) => {
    const is = isKept(values, { place, next: places[i + 1] }, level, thinMs)
    if (!is) lost.push(place)
    return is
  })
  if (lost.length === 0) return { kept, lost: undefined }
  const [from, to] = [lost[0]!, lost.at(-1)!].map((place) => values.timeAt(place)) as [number, number]
  return { kept, lost: { from, to, count: lost.length, reason: level === 'thinned' ? 'thinned' : 'budget' } }
}

function isKept(
  { timeAt, valueAt }: Timed,
  { place, next }: { readonly place: number; readonly next: number | undefined },
  level: Level,
  thinMs: number,
): boolean {
  if (level === 'full') return true
  if (level === 'bare') return false
  if (typeof valueAt(place) !== 'number') return true
  if (level === 'numberless') return false
  // The last of each period.
  return next === undefined || Math.floor(timeAt(next) / thinMs) !== Math.floor(timeAt(place) / thinMs)
}

export interface LossesPorts {
  readonly state: UplinkState
  readonly following: Pick<Following, 'streamOf' | 'idOf' | 'entity'>
  readonly backlog: Pick<Backlog, 'gapsBehind'>
  readonly selection: UplinkSelection
}

export interface Losses {
  /** Which of some places of a stream's part go up, in a slice that begins anew. */
  keep(part: Timed & Pick<CommittedPart, 's'>, places: readonly number[], level: Level): readonly number[]
  begin(): void
  /** What is thinned goes up in slices that are long beside its periods. */
  leastSliceMs(level: Level): number
  /** The slice has gone up: what it lost is part of the state. */
  end(): void
  /** What is to be told of a span that has gone up, which began at a commit time; `told` is to be called then. */
  gaps(began: number): { readonly steps: readonly Step[]; told(): void }
}

export function createLosses(
  { state, following, backlog, selection }: LossesPorts,
  { uplink, alias, thinMs, placing }: { uplink: string; alias: string; thinMs: number; placing: Placing },
): Losses {
  const prefix = gapPrefix(alias, uplink)
  const everything = { id: undefined, stream: undefined, alias, placing }
  let open = new Map<number, Loss>()

  const isSelected = ({ id, type, name }: FollowedStream): boolean =>
    selection.takesAttribute(name) && (selection.dependsOnValues || selection.takes({ id, type }))

  const isTaken = (id: string): boolean => {
    const entity = following.entity(id)?.entity()
    return selection.takesAll || (entity !== undefined && selection.takes(entity))
  }

  function ofRetention(since: number): { steps: Step[]; last: number } {
    const rows = backlog.gapsBehind(state.gap, since)
    const steps = rows.flatMap(({ s, rid, t0, t1, count, reason }) => {
      // A time that a backup lacks, of everything: nobody knows what it held.
      if (reason === 'restore')
        return [gapStep(`${prefix}:restore-${t0}`, everything, { from: t0, to: t1, reason })]
      // What was observed before the span began had gone up, as far as the clocks of devices tell.
      if (t1 < since) return []
      const stream = s === 0 ? undefined : following.streamOf(s)
      if (s !== 0 && (stream === undefined || !isSelected(stream))) return []
      const id = stream?.id ?? following.idOf(rid)
      if (id === undefined || (s === 0 && !isTaken(id))) return []
      const gap = { from: Math.max(t0, since), to: t1, count, reason, atMost: true }
      return [gapStep(`${prefix}:kept-${s === 0 ? `r${rid}` : s}-${t0}`, { id, stream, alias, placing }, gap)]
    })
    return { steps, last: rows.at(-1)?.g ?? state.gap }
  }

  return Object.freeze({
    begin() {
      open = new Map()
    },
    leastSliceMs: (level) => (level === 'full' ? 0 : 10 * thinMs),
    keep(part, places, level) {
      if (level === 'full') return places
      const { kept, lost } = keptOf(part, places, { level, thinMs })
      if (lost !== undefined) open.set(part.s, lost)
      return kept
    },
    end() {
      for (const [s, loss] of open) {
        const of = `${s} ${loss.reason}`
        const before = state.losses[of]
        state.losses[of] = before === undefined ? loss : sumOf(before, loss)
        state.counts.evicted += loss.count
      }
      open = new Map()
    },
    gaps(began) {
      const own = Object.entries(state.losses).flatMap(([of, loss]) => {
        const s = Number.parseInt(of, 10)
        const stream = following.streamOf(s)
        if (stream === undefined) return []
        const id = `${prefix}:${s}-${loss.reason === 'thinned' ? 't' : ''}${loss.from}`
        return [gapStep(id, { id: stream.id, stream, alias, placing }, loss)]
      })
      const kept = ofRetention(began)
      return {
        steps: [...own, ...kept.steps],
        told() {
          state.losses = {}
          state.gap = kept.last
        },
      }
    },
  } satisfies Losses)
}

const sumOf = (one: Loss, other: Loss): Loss => ({
  from: Math.min(one.from, other.from),
  to: Math.max(one.to, other.to),
  count: one.count + other.count,
  reason: one.reason,
})

interface Gap {
  readonly from: number
  readonly to: number
  /** Left out where nobody knows. */
  readonly count?: number
  readonly reason: string
  /** Some of these may have gone up before they were removed here. */
  readonly atMost?: boolean
}

/** The entity by which the other broker is told of a gap. */
export function gapStep(
  id: string,
  {
    id: entity,
    stream,
    alias,
    placing,
  }: {
    id: string | undefined
    stream: Pick<FollowedStream, 'name' | 'dataset'> | undefined
    alias: string
    placing: Placing
  },
  { from, to, count, reason, atMost }: Gap,
): Step {
  const property = (value: Json): AttributeInstance => ({ type: 'Property', value })
  const scope = placing.scope(undefined, false)
  const time = (ms: number) => property({ '@type': 'DateTime', '@value': msToDateTime(ms) })
  const attributes: Record<string, AttributeInstance> = {
    ...(entity === undefined ? {} : { gapOf: { type: 'Relationship', object: entity } }),
    ...(stream === undefined ? {} : { gapAttribute: property(stream.name) }),
    ...(stream === undefined || stream.dataset === '' ? {} : { gapDataset: property(stream.dataset) }),
    gapFrom: time(from),
    gapTo: time(to),
    ...(count === undefined ? {} : { [atMost === true ? 'lostAtMost' : 'lost']: property(count) }),
    reason: property(reason),
    gateway: property(alias),
  }
  return {
    kind: 'put',
    entity: { id, type: [gapType], ...(scope === undefined ? {} : { scope }) },
    attributes: new Map(Object.entries(attributes).map(([name, instance]) => [name, [instance]])),
  }
}
