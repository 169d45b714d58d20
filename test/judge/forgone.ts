/**
 * Evictions that a gateway reports from its history, such as when its disk is full. Instances that only the
 * hub holds are no difference if they lie within a reported eviction and do not exceed its number.
 */
import Database from 'better-sqlite3'

/** Times are ms. */
interface Gap {
  readonly id: string
  /** `name dataset`; null for changes of the entity as a whole. */
  readonly key: string | null
  readonly t0: number
  readonly t1: number
  readonly count: number
}

export interface Forgone {
  /** Whether a number of observations (`<observedAt> <instance>`) of an attribute were evicted. */
  isForgone(id: string, key: string, more: readonly string[]): boolean
  /** The number of evicted observations of an attribute. */
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
      // Changes are reported by commit time, so only their number bounds the values; each held one value at
      // most.
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
