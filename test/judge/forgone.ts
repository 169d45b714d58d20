/**
 * What a gateway says that it let go of its history, as it does where its disk is full: what a hub has of that and the gateway has
 * not is no difference, as long as it lies within what was told and is no more than that.
 */
import Database from 'better-sqlite3'

/** Times are ms. */
interface Gap {
  readonly id: string
  /** `name dataset`; null where it is of changes of the entity as a whole. */
  readonly key: string | null
  readonly t0: number
  readonly t1: number
  readonly count: number
}

export interface Forgone {
  /** Whether so many observations (`<observedAt> <instance>`) of an attribute of an entity were let go. */
  isForgone(id: string, key: string, more: readonly string[]): boolean
  /** How many observations of an attribute of an entity were let go. */
  evicted(id: string, key: string): number
}

export function readForgone(dataFile: string): Forgone {
  const database = new Database(dataFile, { readonly: true })
  try {
    const gaps = database
      .prepare<[], Gap>(
        `SELECT coalesce(entity.id, (SELECT id FROM tombstone WHERE tombstone.rid = gap.rid LIMIT 1)) AS id,
           name.text || ' ' || stream.dataset AS key, t0, t1, count
         FROM gap LEFT JOIN entity USING (rid) LEFT JOIN stream ON stream.s = gap.s
           LEFT JOIN name ON name.i = stream.name
         WHERE gap.reason = 'size'`,
      )
      .all()
    const isForgone: Forgone['isForgone'] = (id, key, more) => {
      const streams = gaps.filter((gap) => gap.id === id && gap.key === key)
      const changes = gaps.filter((gap) => gap.id === id && gap.key === null)
      const isOfStream = (text: string): boolean => {
        const at = Date.parse(text.split(' ', 1)[0]!)
        return streams.some(({ t0, t1 }) => at >= t0 && at <= t1)
      }
      // Changes are told by when they were committed, so only their number bounds what they held; each held one value at most.
      const others = more.filter((text) => !isOfStream(text)).length
      return (
        more.every((text) => !text.endsWith(' twice')) &&
        others <= sumOf(changes) &&
        more.length <= sumOf(streams) + sumOf(changes)
      )
    }
    const evicted = (id: string, key: string): number =>
      sumOf(gaps.filter((gap) => gap.id === id && gap.key === key))
    return { isForgone, evicted }
  } finally {
    database.close()
  }
}

const sumOf = (gaps: readonly Gap[]): number => gaps.reduce((sum, { count }) => sum + count, 0)
