/**
 * Bounds the instances read for one response. A response holds a bounded number of instances; their
 * distribution over attributes depends on the stored numbers. So a small part of each attribute is read
 * first, and more of longer ones while there is room. Memory never holds more than about three times the
 * content of the response.
 */
import { limits } from '#base/limits/limits.ts'
import { type EntityHistory, LargeHistory, type TemporalQuery } from '#broker/history/temporal-requests.ts'
import { roomOf, stuckAttribute } from '#ngsi-ld/history/temporal-part.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { sizeOfJson } from '#ngsi-ld/values/json-size.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/**
 * Reads an entity's history with up to `limit` instances per attribute; undefined if the history was deleted.
 */
type Read = (id: string, query: TemporalQuery) => EntityHistory | undefined

/** Expected number of attributes per entity; with more, the first read returns more instances. */
const attributesExpected = 8

/** Maximum number of instances per attribute in the first read, when their size is still unknown. */
const firstInstances = 32

/** The query of the first read for a number of entities; `query.limit` is the capacity of the response. */
export function firstRead(query: TemporalQuery, entities: number): TemporalQuery {
  return { ...query, limit: Math.min(shareOf(query, entities), firstInstances) }
}

/** The first read of one entity, and its query. It has fewer instances if those exceed a page together. */
export function readFirst(query: TemporalQuery, read: (query: TemporalQuery) => EntityHistory | undefined) {
  const share = { ...query, limit: shareOf(query, 1) }
  try {
    return { query: share, first: read({ ...share, bytesMax: limits.pageBytesMax.value }) }
  } catch (error) {
    if (!(error instanceof LargeHistory)) throw error
    const few = firstRead(query, 1)
    return { query: few, first: read(few) }
  }
}

const shareOf = ({ limit }: TemporalQuery, entities: number): number =>
  Math.max(1, Math.floor(limit / (attributesExpected * Math.max(1, entities))))

/** The number of instances of this average size that a response can hold, at most `most`. */
export function capacityFor(page: readonly EntityHistory[], most: number): number {
  let count = 0
  let size = 0
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
 * Extends the first read until it can fill a response of `most` instances and its range ends behind the first
 * time. Entities whose history was deleted meanwhile are left out.
 *
 * @throws ngsi-ld.too-complex at `temporalInstantMax`
 */
export function readMore(
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
    // The extra instance shows whether the response is complete.
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
 * Reads more of an entity if all instances read of an attribute have the same time, since the next range
 * could not start behind them. Other entities of the page are left as they are, because a page may have many.
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
      const what = `${id} has more than ${most} instances of ${name} at one time, ${msToDateTime(time)}`
      throw tooComplex(`${what}; use another timeproperty, or exclude this time`)
    }
    const limit = Math.min(4 * before, most)
    limitOf.set(id, limit)
    renew(found, id, read(id, { ...query, limit }))
  }
}
