/**
 * The entity of type HistoryGap by which another broker is told what is missing there. Ids are made of what they tell, so a
 * gap that is told again after a crash is the same one. Pure.
 */
import { hash } from 'node:crypto'
import type { FollowedStream } from '#broker/changes/change-feed.ts'
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { ScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Step } from '#uplink/steps/step-plan.ts'

export const gapType = 'HistoryGap'

/** With which the ids of the gaps that an uplink tells begin. */
export const gapPrefix = (alias: string, uplink: string): string =>
  `urn:ngsi-ld:${gapType}:${alias}:${hash('sha1', uplink).slice(0, 8)}`

/** Gaps that go up together, a request's worth at most; `told` is to be called when they were taken: the state is behind them then. */
export interface GapPage {
  readonly steps: readonly Step[]
  onAccepted(): void
  /** Whether they are still so; left out, they always are. */
  isValid?(): boolean
}

interface Gap {
  readonly from: number
  readonly to: number
  /** Left out where nobody knows. */
  readonly count?: number
  readonly reason: string
  /** Some of these may have gone up before they were removed here. */
  readonly atMost?: boolean
  /** Commit times (ms) from and before which all of it was written, where they are known: what was written else is none of it. */
  readonly writtenFrom?: number | undefined
  readonly writtenBefore?: number | undefined
}

/** The entity by which the other broker is told of a gap. */
export function gapStep(
  id: string,
  {
    id: entity,
    stream,
    alias,
    scopePrefix,
  }: {
    id: string | undefined
    stream: Pick<FollowedStream, 'name' | 'dataset'> | undefined
    alias: string
    scopePrefix: ScopePrefix
  },
  { from, to, count, reason, atMost, writtenFrom, writtenBefore }: Gap,
): Step {
  const property = (value: Json): AttributeInstance => ({ type: 'Property', value })
  const scope = scopePrefix.scope(undefined, false)
  const time = (ms: number) => property({ '@type': 'DateTime', '@value': msToDateTime(ms) })
  const attributes: Record<string, AttributeInstance> = {
    ...(entity === undefined ? {} : { gapOf: { type: 'Relationship', object: entity } }),
    ...(stream === undefined ? {} : { gapAttribute: property(stream.name) }),
    ...(stream === undefined || stream.dataset === '' ? {} : { gapDataset: property(stream.dataset) }),
    gapFrom: time(from),
    gapTo: time(to),
    ...(count === undefined ? {} : { [atMost === true ? 'lostAtMost' : 'lost']: property(count) }),
    ...(writtenFrom === undefined ? {} : { writtenFrom: time(writtenFrom) }),
    ...(writtenBefore === undefined ? {} : { writtenBefore: time(writtenBefore) }),
    reason: property(reason),
    gateway: property(alias),
  }
  return {
    kind: 'put',
    entity: { id, type: [gapType], ...(scope === undefined ? {} : { scope }) },
    attributes: new Map(Object.entries(attributes).map(([name, instance]) => [name, [instance]])),
  }
}
