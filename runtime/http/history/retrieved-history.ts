/**
 * The evolution of one entity as far as one answer holds it (GS CIM 009, 5.7.3). Without a temporal query all instances
 * are retrieved, also those without observedAt: these come first into an answer that cannot hold everything, since the
 * range that leads on to the rest is a range of observedAt. If they alone are too many, the answer is a part of them,
 * and its range is of modifiedAt. Others have their turn between two reads.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { EntityHistory, TemporalQuery } from '#broker/history/temporal-requests.ts'
import { type Part, partOf } from '#ngsi-ld/history/temporal-part.ts'
import type { Evolution, TimedInstance } from '#ngsi-ld/history/temporal-query.ts'
import { firstLook, mostLike, readOn } from './instance-budget.ts'

export interface Retrieved extends Pick<Part, 'range'> {
  readonly evolution: Evolution
}

type Read = (query: TemporalQuery) => EntityHistory | undefined

/**
 * @param most instances that an answer holds.
 * @param asValues whether only values and their times are shown: a deletion has no value.
 */
export async function retrievedHistory(
  read: Read,
  query: TemporalQuery,
  { most, asValues }: { readonly most: number; readonly asValues: boolean },
): Promise<Retrieved | undefined> {
  const first = read(lookOf(query, most))
  if (first === undefined) return undefined
  const isWhole = query.timerel === undefined && query.timeproperty === 'observedAt'
  if (!isWhole || first.allTimed === true) return partFor({ read, first }, query, { most, share: 1 })
  const written = { ...query, timeproperty: 'modifiedAt', unobserved: true } as const
  const readWritten: Read = (more) => {
    const found = read(more)
    return found && withoutTimed(found, asValues)
  }
  const firstWritten = readWritten(lookOf(written, most))
  if (firstWritten === undefined) return undefined
  const unobserved = await partFor({ read: readWritten, first: firstWritten }, written, { most, share: 1 })
  if (unobserved === undefined) return undefined
  // What they leave of the answer, by number and by size.
  const share = 1 - countIn(unobserved.evolution) / unobserved.held
  if (unobserved.range !== undefined || share <= 0) return unobserved
  const observed = await partFor({ read, first }, query, { most, share })
  return observed && { ...observed, evolution: joined(observed.evolution, unobserved.evolution, query) }
}

const lookOf = (query: TemporalQuery, most: number): TemporalQuery => firstLook({ ...query, limit: most }, 1)

/**
 * What a share of an answer holds of a history; `held` is how many instances like these it may hold.
 * @param reading.first what the first look saw
 */
async function partFor(
  { read, first }: { readonly read: Read; readonly first: EntityHistory },
  query: TemporalQuery,
  { most, share }: { readonly most: number; readonly share: number },
): Promise<(Retrieved & { readonly held: number }) | undefined> {
  const held = Math.max(1, Math.floor(mostLike([first], most) * share))
  if (first.cut.size > 0) await nextTurn()
  const shown = readOn([first], { query: lookOf(query, most), most: held }, (_, more) => read(more))
  if (first.cut.size > 0) await nextTurn()
  const { evolutions, range } = partOf(shown, held, query)
  const [evolution] = evolutions
  return evolution && { evolution, range, held }
}

const countIn = ({ attributes }: Evolution): number =>
  [...attributes.values()].reduce((sum, list) => sum + list.length, 0)

/**
 * In order of observedAt, and of the time of writing where an instance has none. The last instances are those with
 * observedAt, where an attribute has any.
 */
function joined(observed: Evolution, unobserved: Evolution, { lastN }: TemporalQuery): Evolution {
  const attributes = new Map(observed.attributes)
  for (const [name, list] of unobserved.attributes) {
    const known = attributes.get(name) ?? []
    if (lastN !== undefined && known.length > 0) continue
    attributes.set(
      name,
      [...known, ...list].sort((a, b) => timeIn(a) - timeIn(b)),
    )
  }
  return { ...observed, attributes }
}

/** Without scopes that were set: these have that time for observedAt. Only their deletions have none. */
function withoutTimed(history: EntityHistory, asValues: boolean): EntityHistory {
  const attributes = new Map<string, readonly TimedInstance[]>()
  for (const [name, list] of history.attributes) {
    const left = list.filter(({ deletedAt }) => (deletedAt === undefined ? name !== 'scope' : !asValues))
    if (left.length > 0) attributes.set(name, left)
  }
  return { ...history, attributes }
}

const timeIn = ({ observedAt, modifiedAt }: TimedInstance): number => observedAt ?? modifiedAt
