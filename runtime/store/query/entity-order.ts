/**
 * Sort keys of entities, taken from the scalar index where possible, so that tens of thousands of entities
 * are ordered without reading their documents. Also collects the few places that a page needs out of all
 * candidates.
 */
import type { CompiledOrder, EntityOrder } from '#ngsi-ld/query/order.ts'
import type { OrderKey } from '#ngsi-ld/query/order-key.ts'
import { isPlain } from '#ngsi-ld/query/query.ts'
import { indexedTextMax, scalarKinds } from '#store/entities/entity-index.ts'
import type { SqlPorts } from './place-sql.ts'
import type { Sql } from './sql-text.ts'

/** The position of an entity in an order. */
export interface OrderedPlace {
  readonly keys: readonly OrderKey[]
  readonly rid: number
}

export interface OrderedPageRequest {
  readonly limit: number
  readonly offset: number
  /** Only entities after this place. */
  readonly after?: OrderedPlace | undefined
}

/** The sort keys of an entity; undefined when only its document has them. */
export type IndexedKeys = (rid: number) => readonly OrderKey[] | undefined

type ScalarRow = readonly [rid: number, kind: number, value: number | string]

/** Undefined when the index does not cover the terms of the order. */
export function indexedKeys(
  { terms, from }: EntityOrder,
  { nameOf, unwritten }: SqlPorts,
  rowsOf: (sql: Sql) => readonly ScalarRow[],
): IndexedKeys | undefined {
  const isIndexed = terms.every(
    ({ path, far }) => !far && isPlain(path) && !['id', 'type', 'scope'].includes(path.names[0]!),
  )
  // With an origin the values may be places, which the scalar index stores in another form.
  if (!isIndexed || from !== undefined) return undefined
  const columns = terms.map(({ path }) => {
    const attribute = path.names[0]!
    const name = nameOf(attribute)
    const fresh = unwritten?.(attribute, noneFits)
    return {
      keys: name === undefined ? new Map<number, OrderKey | typeof doubt>() : keysOf(name, rowsOf),
      fresh,
    }
  })
  return (rid) => {
    const keys: OrderKey[] = []
    for (const column of columns) {
      const key = column.keys.get(rid) ?? null
      if (key === doubt || column.fresh?.has(rid) === true) return undefined
      keys.push(key)
    }
    return keys
  }
}

/** Only the set of entities with newer values is needed, so no value has to fit. */
const noneFits = { fits: () => false, low: Infinity, high: -Infinity }

/**
 * Marks a key that the index cannot provide: it has several values, only the beginning of a text, or no
 * scalar but a place, an array or an object.
 */
const doubt = Symbol('doubt')

function keysOf(
  name: number,
  rowsOf: (sql: Sql) => readonly ScalarRow[],
): ReadonlyMap<number, OrderKey | typeof doubt> {
  const keys = new Map<number, OrderKey | typeof doubt>()
  const { boolean, cell } = scalarKinds
  const sql = 'SELECT rid, kind, value FROM scalar WHERE name = ?'
  for (const [rid, kind, value] of rowsOf({ text: sql, params: [name] })) {
    const isCut = typeof value === 'string' && value.length >= indexedTextMax - 1
    if (keys.has(rid) || kind >= cell || isCut) keys.set(rid, doubt)
    else keys.set(rid, kind === boolean ? value === 1 : value)
  }
  return keys
}

/** Surplus places collected before the list is cut. */
const placesBeyond = 1000

/** Keeps the first places of all that are offered; it holds at most about twice the wanted number. */
export function firstPlaces(order: CompiledOrder, { limit, offset, after }: OrderedPageRequest) {
  const compare = (a: OrderedPlace, b: OrderedPlace): number => order.compare(a.keys, b.keys) || a.rid - b.rid
  const wanted = offset + limit + 1
  let places: OrderedPlace[] = []
  const cut = (): void => {
    places = places.sort(compare).slice(0, wanted)
  }
  return Object.freeze({
    offer(place: OrderedPlace): void {
      if (after !== undefined && compare(place, after) <= 0) return
      places.push(place)
      if (places.length > 2 * wanted + placesBeyond) cut()
    },
    result(): { readonly places: readonly OrderedPlace[]; readonly more: boolean } {
      cut()
      return { places: places.slice(offset, offset + limit), more: places.length === wanted }
    },
  })
}
