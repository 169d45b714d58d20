/**
 * What the other broker was told will not come: the budget let it go, and gaps there say so. A comparison leaves it alone, so that
 * the budget holds and the gaps stay true. They are read where they are kept: where one was lost or deleted over there, what it told of
 * goes up.
 */
import { limits } from '#base/limits/limits.ts'
import type { Span } from '#broker/changes/change-feed.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import type { Centre } from '#uplink/centre/central-broker.ts'
import type { Reply } from '#uplink/centre/response-shapes.ts'
import type { Confirmation } from '#uplink/connection/absence.ts'
import { areEntities } from '#uplink/connection/absence.ts'
import { keyOf } from '#uplink/steps/deletion-steps.ts'
import { gapPrefix, gapType } from './gap-step.ts'

/** What was let go of an attribute instance (`name` or `name datasetId`) within from <= ms < to. */
export type DroppedWithin = (key: string, span: Span) => IsDropped

/** Whether what was observed at a time within, and was written at another (ms), was let go. */
export type IsDropped = (at: number, writtenAt: number) => boolean

interface GapSpan {
  readonly key: string
  readonly from: number
  readonly to: number
  /** What was not written between these (ms) was not let go, though it was observed between those; times of devices may be anything. */
  readonly writtenFrom: number
  readonly writtenBefore: number
}

const reasons: ReadonlySet<unknown> = new Set(['thinned', 'budget'])

export interface GapReadingPorts {
  readonly centre: Centre
  /** The JSON of an answer of that shape; undefined when the uplink was closed. */
  readonly fetchReply: <T>(
    is: (json: unknown) => json is T,
    see: () => Promise<Confirmation>,
  ) => Promise<Reply<T> | undefined>
  /** Names of this gateway and of the uplink, in ids of its gaps. */
  readonly alias: string
  readonly uplink: string
}

/** What an entity's gaps over there say; undefined when the uplink was closed. */
export async function budgetGapsOf(
  id: string,
  { centre, fetchReply, alias, uplink }: GapReadingPorts,
): Promise<DroppedWithin | undefined> {
  const q = encodeURIComponent(`gapOf=="${id}"`)
  const limit = limits.uplinkEntitiesPerRequest.value
  const stretches: GapSpan[] = []
  for (let offset = 0; ; offset += limit) {
    const path = `/entities?type=${gapType}&q=${q}&limit=${limit}&offset=${offset}`
    const answer: Reply<readonly Entity[]> | undefined = await fetchReply(areEntities, () =>
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
    // Few of all cuts concern a day, and each of its values is looked up.
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
