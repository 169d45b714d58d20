/**
 * Gaps reported to a hub: its entities of type HistoryGap. Every observation that only the gateway holds must
 * lie within a gap of its attribute, and the gaps must report at least as many.
 */
import { entitiesOf } from './entities.ts'

/** Times are ms. */
export interface ReportedGap {
  /** Undefined if the gap names no entity. */
  readonly id: string | undefined
  /** `name dataset`; undefined for changes of an entity, or without an entity. */
  readonly key: string | undefined
  readonly from: number
  readonly to: number
  readonly count: number
  readonly reason: string
}

type Json = Readonly<Record<string, unknown>>

export async function readGaps(hubUrl: string): Promise<readonly ReportedGap[]> {
  const all = await entitiesOf(hubUrl, ['HistoryGap'])
  return [...all.values()].map((gap): ReportedGap => {
    const value = (name: string): unknown => (gap[name] as Json | undefined)?.['value']
    const time = (name: string): number => Date.parse(String((value(name) as Json)['@value']))
    const [name, dataset] = ['gapAttribute', 'gapDataset'].map((one) => value(one) as string | undefined)
    return {
      id: (gap['gapOf'] as Json | undefined)?.['object'] as string | undefined,
      key: name === undefined ? undefined : `${name} ${dataset ?? ''}`,
      from: time('gapFrom'),
      to: time('gapTo'),
      count: Number(value('lost') ?? value('lostAtMost') ?? 0),
      reason: String(value('reason')),
    }
  })
}

/**
 * Instances of an attribute missing at the hub, and the number evicted at the gateway before they could be
 * sent.
 */
export interface Missing {
  readonly id: string
  readonly key: string
  /** `<observedAt> <instance>` of those that only the gateway holds. */
  readonly lost: readonly string[]
  /** The number that neither holds. */
  readonly vanished: number
}

/** Describes missing instances without a gap; undefined if all are reported. */
export function unreported(
  gaps: readonly ReportedGap[],
  { id, key, lost, vanished }: Missing,
): string | undefined {
  const own = gaps.filter((gap) => gap.id === id && gap.key === key)
  const outside = lost.filter((text) => {
    const at = Date.parse(text.split(' ', 1)[0]!)
    return !own.some(({ from, to }) => at >= from && at <= to)
  })
  if (outside.length > 0) return `${outside.length} missing outside of all gaps, such as ${outside[0]}`
  const unnamed = gaps.filter((gap) => gap.id === undefined && gap.reason !== 'restore')
  const reported = sumOf(own) + (vanished > 0 ? sumOf(unnamed) : 0)
  const missing = lost.length + vanished
  return reported < missing ? `${missing} missing, and gaps report ${reported}` : undefined
}

/**
 * Describes gaps that report more than was within them; undefined if none does. `here` is what the gateway
 * holds; `evicted` others were part of it.
 */
export function overreported(
  gaps: readonly ReportedGap[],
  {
    id,
    key,
    here,
    evicted,
  }: Pick<Missing, 'id' | 'key'> & { readonly here: readonly string[]; readonly evicted: number },
): string | undefined {
  const times = here.map((text) => Date.parse(text.split(' ', 1)[0]!))
  for (const { count, from, to, reason, ...of } of gaps) {
    if (of.id !== id || of.key !== key || (reason !== 'budget' && reason !== 'thinned')) continue
    const within = times.filter((at) => at >= from && at <= to).length
    if (count > within + evicted) return `a gap reports ${count}, and within it were ${within + evicted}`
  }
  return undefined
}

const sumOf = (gaps: readonly ReportedGap[]): number => gaps.reduce((sum, { count }) => sum + count, 0)
