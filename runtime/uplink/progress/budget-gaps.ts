/**
 * Gaps at the centre that report what the budget dropped. A reconciliation does not send these observations,
 * so that the budget holds and the gaps stay true. The gaps are read from the centre: if one was deleted
 * there, its observations are sent.
 */
import { limits } from '#base/limits/limits.ts'
import type { CommitSpan } from '#broker/changes/change-feed.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import type { CentralBroker } from '#uplink/centre/central-broker.ts'
import type { CentreReply } from '#uplink/centre/response-shapes.ts'
import { areEntities, type Confirmation } from '#uplink/connection/absence.ts'
import { keyOf } from '#uplink/steps/deletion-steps.ts'
import { gapPrefix, gapType } from './gap-step.ts'

/** The part of an attribute instance (`name` or `name datasetId`) within from <= ms < to that was dropped. */
export type DroppedWithin = (key: string, span: CommitSpan) => IsDropped

/** Whether an observation of a time, committed at another time (both ms), was dropped. */
export type IsDropped = (at: number, writtenAt: number) => boolean

interface GapSpan {
  readonly key: string
  readonly from: number
  readonly to: number
  /**
   * Observations committed outside this range were not dropped, even if their time lies in the gap: device
   * clocks are arbitrary.
   */
  readonly writtenFrom: number
  readonly writtenBefore: number
}

const reasons: ReadonlySet<unknown> = new Set(['thinned', 'budget'])

export interface GapReadingPorts {
  readonly centre: CentralBroker
  /** Fetches JSON of the given shape; undefined when the uplink was closed. */
  readonly fetchReply: <T>(
    is: (json: unknown) => json is T,
    see: () => Promise<Confirmation>,
  ) => Promise<CentreReply<T> | undefined>
  /** The names of this gateway and of the uplink, as in the ids of its gaps. */
  readonly alias: string
  readonly uplink: string
}

/** Reads the gaps of an entity from the centre; undefined when the uplink was closed. */
export async function budgetGapsOf(
  id: string,
  { centre, fetchReply, alias, uplink }: GapReadingPorts,
): Promise<DroppedWithin | undefined> {
  const q = encodeURIComponent(`gapOf=="${id}"`)
  const limit = limits.uplinkEntitiesPerRequest.value
  const stretches: GapSpan[] = []
  for (let offset = 0; ; offset += limit) {
    const path = `/entities?type=${gapType}&q=${q}&limit=${limit}&offset=${offset}`
    const answer: CentreReply<readonly Entity[]> | undefined = await fetchReply(areEntities, () =>
      centre.confirmAbsent(() => centre.request('GET', path)),
    )
    if (answer === undefined) return undefined
    const gaps = answer.json ?? []
    const own = gaps.filter((gap) => gap.id.startsWith(`${gapPrefix(alias, uplink)}:`))
    stretches.push(...own.flatMap(gapSpansOf))
    if (gaps.length < limit) break
  }
  const byKey = Map.groupBy(stretches, ({ key }) => key)
  return (key, span) => {
    // Prefilters, because few outages affect a given day while each of its values is tested.
    const some = (byKey.get(key) ?? []).filter(({ from, to }) => from < span.to && to >= span.from)
    return (at, writtenAt) =>
      some.some(
        ({ from, to, writtenFrom, writtenBefore }) =>
          from <= at && at <= to && writtenFrom <= writtenAt && writtenAt < writtenBefore,
      )
  }
}

function gapSpansOf(gap: Entity): readonly GapSpan[] {
  const member = (name: string): unknown => {
    const value: unknown = instancesOf(gap, name)[0]?.value
    return isObject(value) ? value['@value'] : value
  }
  const [name, dataset = ''] = [member('gapAttribute'), member('gapDataset')]
  const time = (name: string): number | undefined => dateTimeToMs(String(member(name)))
  const [from, to] = [time('gapFrom'), time('gapTo')]
  const writtenFrom = time('writtenFrom') ?? Number.NEGATIVE_INFINITY
  const writtenBefore = time('writtenBefore') ?? Number.POSITIVE_INFINITY
  const isOne = typeof name === 'string' && typeof dataset === 'string' && reasons.has(member('reason'))
  if (!isOne || from === undefined || to === undefined) return []
  return [{ key: keyOf(name, dataset), from, to, writtenFrom, writtenBefore }]
}
