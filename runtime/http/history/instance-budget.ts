/**
 * How much is read of the histories that one answer tells. It holds so many instances in all, and how many of them are of which
 * attribute follows from how many there are of each: so a little of each is read first, and more of those that turn out to be
 * longer, as long as there is room for it. Never more than some three times what the answer holds is in memory.
 */
import { limits } from '#base/limits/limits.ts'
import type { EntityHistory, TemporalQuery } from '#broker/history/temporal-requests.ts'
import { roomOf, stuckAttribute } from '#ngsi-ld/history/temporal-part.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { sizeOfJson } from '#ngsi-ld/values/json-size.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** Reads the history of an entity, up to `limit` instances of each attribute; undefined where it has none any more. */
type Read = (id: string, query: TemporalQuery) => EntityHistory | undefined

/** Attributes that an entity is expected to have; where they are more, the first look holds more. */
const attributesExpected = 8

/** Instances of each attribute in a first look at most: before it, nobody knows how large they are. */
const firstInstances = 32

/** The query of the first look at so many entities, of a query whose `limit` is what the answer holds. */
export function firstLook(query: TemporalQuery, entities: number): TemporalQuery {
  const share = Math.floor(query.limit / (attributesExpected * Math.max(1, entities)))
  return { ...query, limit: Math.max(1, Math.min(share, firstInstances)) }
}

/** How many instances like these an answer holds: at most so many, and fewer where they are large. */
export function mostLike(page: readonly EntityHistory[], most: number): number {
  let [count, size] = [0, 0]
  for (const { attributes } of page) {
    for (const list of attributes.values()) {
      for (const { instance } of list) size += sizeOfJson(instance)
      count += list.length
    }
  }
  const fitting = Math.floor((limits.pageBytesMax.value * count) / Math.max(1, size))
  return count === 0 ? most : Math.max(1, Math.min(most, fitting))
}

/**
 * What a first look saw, and so much more that an answer of `most` instances can be made of it, and leads on. Who has no history
 * any more is left out.
 * @throws ngsi-ld.too-complex at `temporalInstantMax`
 */
export function readOn(
  page: readonly EntityHistory[],
  { query, most }: { readonly query: TemporalQuery; readonly most: number },
  read: Read,
): readonly EntityHistory[] {
  const found = new Map(page.map((one) => [one.id, one]))
  let { limit } = query
  while (limit < most) {
    const all = [...found.values()]
    const cut = all.filter((one) => one.cut.size > 0)
    const room = roomOf(all, most)
    if (cut.length === 0 || room < limit) break
    // One more than fits shows whether there is more than fits.
    limit = Math.min(most, Math.max(room + 1, 2 * limit))
    for (const { id } of cut) renew(found, id, read(id, { ...query, limit }))
  }
  return leadingOn(found, { ...query, limit }, read)
}

function renew(found: Map<string, EntityHistory>, id: string, one: EntityHistory | undefined): void {
  if (one === undefined) found.delete(id)
  else found.set(id, one)
}

/**
 * Reads more of an entity where all that was read of an attribute is of one time, so that a part leads on to others; what
 * was read of the others of a page stays as it is, since a page may be of many.
 */
function leadingOn(
  found: Map<string, EntityHistory>,
  query: TemporalQuery,
  read: Read,
): readonly EntityHistory[] {
  const most = limits.temporalInstantMax.value
  const limitOf = new Map<string, number>()
  for (;;) {
    const stuck = stuckAttribute([...found.values()], most, query)
    if (stuck === undefined) return [...found.values()]
    const { id, name, time, count } = stuck
    const before = limitOf.get(id) ?? query.limit
    if (before >= most || count > most) {
      const what = `${id} has more than ${most} instances of ${name} of one time, ${msToDateTime(time)}`
      throw tooComplex(`${what}; ask over another time property, or around it`)
    }
    const limit = Math.min(4 * before, most)
    limitOf.set(id, limit)
    renew(found, id, read(id, { ...query, limit }))
  }
}
