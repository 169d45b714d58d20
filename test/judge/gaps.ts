/**
 * What a hub was told is missing there: its entities of type HistoryGap. Every observation that is at the gateway alone has to lie
 * within such a gap of its attribute, and no more of them may be missing than these tell.
 */
import { entitiesOf } from './entities.ts'

/** Times are ms. */
export interface ToldGap {
  /** Undefined where it is of nobody who can be named. */
  readonly id: string | undefined
  /** `name dataset`; undefined where it is of changes of an entity, or of nobody. */
  readonly key: string | undefined
  readonly from: number
  readonly to: number
  readonly count: number
  readonly reason: string
}

type Json = Readonly<Record<string, unknown>>

export async function readGaps(hubUrl: string): Promise<readonly ToldGap[]> {
  const all = await entitiesOf(hubUrl, ['HistoryGap'])
  return [...all.values()].map((gap): ToldGap => {
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

/** What of an attribute is missing at the hub, and how much of it went at the gateway before it could be there. */
export interface Missing {
  readonly id: string
  readonly key: string
  /** `<observedAt> <instance>` of those that are at the gateway alone. */
  readonly lost: readonly string[]
  /** How many are at neither. */
  readonly vanished: number
}

/** What is missing and was not told, in words; undefined where all was. */
export function untold(gaps: readonly ToldGap[], { id, key, lost, vanished }: Missing): string | undefined {
  const own = gaps.filter((gap) => gap.id === id && gap.key === key)
  const outside = lost.filter((text) => {
    const at = Date.parse(text.split(' ', 1)[0]!)
    return !own.some(({ from, to }) => at >= from && at <= to)
  })
  if (outside.length > 0) return `${outside.length} missing outside of all gaps, such as ${outside[0]}`
  const unnamed = gaps.filter((gap) => gap.id === undefined && gap.reason !== 'restore')
  const told = sumOf(own) + (vanished > 0 ? sumOf(unnamed) : 0)
  const missing = lost.length + vanished
  return told < missing ? `${missing} missing, and gaps tell of ${told}` : undefined
}

/**
 * Gaps of what the uplink let go that tell of more than there was within them, in words; undefined where none does. `here` is
 * what the gateway holds, which `evicted` others were part of.
 */
export function overtold(
  gaps: readonly ToldGap[],
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
    if (count > within + evicted) return `a gap tells of ${count}, and within it were ${within + evicted}`
  }
  return undefined
}

const sumOf = (gaps: readonly ToldGap[]): number => gaps.reduce((sum, { count }) => sum + count, 0)
