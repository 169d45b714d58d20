/**
 * The part of one entity's evolution that fits into a response (GS CIM 009, 5.7.3). Without a temporal query
 * all instances are retrieved, including those without observedAt. The latter come first, because the range
 * for the next request is a range of observedAt. If instances without observedAt do not fit, the response
 * contains a part of them, and Content-Range is given in modifiedAt. Reading yields between two reads.
 */
import { nextTurn } from '#base/load/yielding.ts'
import type { EntityHistory, TemporalQuery } from '#broker/history/temporal-requests.ts'
import { partOf, type TemporalPart } from '#ngsi-ld/history/temporal-part.ts'
import type { Evolution, TimedInstance } from '#ngsi-ld/history/temporal-query.ts'
import { capacityFor, readFirst, readMore } from './instance-budget.ts'

export interface Retrieved extends Pick<TemporalPart, 'range'> {
  readonly evolution: Evolution
}

type Read = (query: TemporalQuery) => EntityHistory | undefined

/**
 * @param most maximum number of instances in the response.
 *
 * @param asValues whether only values and times are shown; deletions have no value.
 */
export async function retrievedHistory(
  read: Read,
  query: TemporalQuery,
  { most, asValues }: { readonly most: number; readonly asValues: boolean },
): Promise<Retrieved | undefined> {
  const found = readFirst({ ...query, limit: most }, read)
  const { first } = found
  if (first === undefined) return undefined
  const isWhole = query.timerel === undefined && query.timeproperty === 'observedAt'
  if (!isWhole || first.allTimed === true) return partFor({ read, ...found, first }, { most, share: 1 })
  const written = { ...query, timeproperty: 'modifiedAt', unobserved: true } as const
  const readWritten: Read = (more) => {
    const history = read(more)
    return history && withoutTimed(history, asValues)
  }
  const foundWritten = readFirst({ ...written, limit: most }, readWritten)
  if (foundWritten.first === undefined) return undefined
  const unobserved = await partFor(
    { read: readWritten, ...foundWritten, first: foundWritten.first },
    { most, share: 1 },
  )
  if (unobserved === undefined) return undefined
  // The share of the response left by them, by number and by size.
  const share = 1 - countIn(unobserved.evolution) / unobserved.held
  if (unobserved.range !== undefined || share <= 0) return unobserved
  const observed = await partFor({ read, ...found, first }, { most, share })
  return observed && { ...observed, evolution: joined(observed.evolution, unobserved.evolution, query) }
}

/**
 * The part of a history for a share of the response; `held` is the number of instances of this size that fit.
 *
 * @param reading.first the result of the first read, which had the query `reading.query`
 */
async function partFor(
  {
    read,
    query,
    first,
  }: { readonly read: Read; readonly query: TemporalQuery; readonly first: EntityHistory },
  { most, share }: { readonly most: number; readonly share: number },
): Promise<(Retrieved & { readonly held: number }) | undefined> {
  const held = Math.max(1, Math.floor(capacityFor([first], most) * share))
  if (first.cut.size > 0) await nextTurn()
  const shown = readMore([first], { query, most: held }, (_, more) => read(more))
  if (first.cut.size > 0) await nextTurn()
  const { evolutions, range } = partOf(shown, held, query)
  const [evolution] = evolutions
  return evolution && { evolution, range, held }
}

const countIn = ({ attributes }: Evolution): number =>
  [...attributes.values()].reduce((sum, list) => sum + list.length, 0)

/**
 * Merges by observedAt, or by modifiedAt for instances without it. With lastN, instances with observedAt take
 * precedence if an attribute has any.
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

/**
 * Keeps instances without observedAt. A scope's time of setting counts as its observedAt; only scope
 * deletions have none.
 */
function withoutTimed(history: EntityHistory, asValues: boolean): EntityHistory {
  const attributes = new Map<string, readonly TimedInstance[]>()
  for (const [name, list] of history.attributes) {
    const left = list.filter(({ deletedAt }) => (deletedAt === undefined ? name !== 'scope' : !asValues))
    if (left.length > 0) attributes.set(name, left)
  }
  return { ...history, attributes }
}

const timeIn = ({ observedAt, modifiedAt }: TimedInstance): number => observedAt ?? modifiedAt
