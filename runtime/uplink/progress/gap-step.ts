/**
 * Builds the HistoryGap entity that reports missing history to the centre. Its id is derived from what it
 * reports, so a gap sent again after a crash has the same id. Pure.
 */
import { hash } from 'node:crypto'
import type { FollowedStream } from '#broker/changes/change-feed.ts'
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { ScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Step } from '#uplink/steps/step-plan.ts'

export const gapType = 'HistoryGap'

/** Prefix of the ids of the gaps that an uplink reports. */
export const gapPrefix = (alias: string, uplink: string): string =>
  `urn:ngsi-ld:${gapType}:${alias}:${hash('sha1', uplink).slice(0, 8)}`

/**
 * Gaps sent together, at most one request's worth. The caller calls `onAccepted` once the centre has accepted
 * them: the state then moves past them.
 */
export interface GapPage {
  readonly steps: readonly Step[]
  onAccepted(): void
  /** Whether the gaps are still accurate; absent if they always are. */
  isValid?(): boolean
}

interface Gap {
  readonly from: number
  readonly to: number
  /** Absent where the number is unknown. */
  readonly count?: number
  readonly reason: string
  /** Whether some of these may have been sent before they were removed here. */
  readonly atMost?: boolean
  /**
   * Range of commit times (ms) of the missing observations, where known; those committed outside it are not
   * missing.
   */
  readonly writtenFrom?: number | undefined
  readonly writtenBefore?: number | undefined
}

/** The step that sends a gap to the centre. */
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
