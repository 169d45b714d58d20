/**
 * Cache of entity rows, with one byte budget for all tenants. Rows read by id are always cached; a CLOCK hand
 * in the tenant with the largest share evicts rows not read since it last passed. Rows read by searches are
 * admitted only if searches read them more than twice as often as the row they would evict. So the same rows
 * stay cached while searches read many more rows than fit (TinyLFU: Einziger et al., 2017). While memory is
 * short, the budget is smaller.
 */
import { limits } from '#base/limits/limits.ts'
import type { EntityRow } from './page-rows.ts'

/** A cached row, its size, and whether it was read since the hand last passed. */
interface CachedRow {
  row: EntityRow
  bytes: number
  isRead: boolean
}

/** The cache of one tenant, as the budget sees it. */
interface Holder {
  readonly bytes: () => number
  /** Advances the hand by one entry, and evicts that entry if it was not read. */
  readonly advanceHand: () => void
  /** Evicts the next entry if searches read it less often; returns false otherwise. */
  readonly evictIfRarer: (often: number) => boolean
}

/**
 * Total size of all tenants' rows, and how often searches read each. The counts of a tenant without searches
 * decay.
 */
export function createRowBudget() {
  const holders = new Set<Holder>()
  const frequencies = createFrequencies(limits.rowFrequenciesMax.value)
  let opened = 0
  let bytes = 0
  let isShort = false
  const bytesMax = (): number =>
    (isShort ? limits.documentsCachedShortBytes : limits.documentsCachedBytes).value
  /**
   * The holder that must evict before `needed` bytes are added: the largest. Undefined when there is room, or
   * no holder.
   */
  function holderToEvict(needed: number): Holder | undefined {
    if (bytes + needed <= bytesMax()) return undefined
    let most: Holder | undefined
    for (const holder of holders) if (most === undefined || holder.bytes() > most.bytes()) most = holder
    return most
  }
  /** Evicts the rows read longest ago until `needed` bytes can be added. */
  function makeRoom(needed: number): void {
    for (let most = holderToEvict(needed); most !== undefined; most = holderToEvict(needed))
      most.advanceHand()
  }
  return Object.freeze({
    /**
     * Counts of one more tenant. Equal rids of two tenants are counted separately as far as the table size
     * allows.
     */
    frequencies() {
      const first = opened++ * tenantOffset
      return {
        of: (rid: number) => frequencies.of(first + rid),
        note: (rid: number) => frequencies.note(first + rid),
      }
    },
    /** Call on every change of a holder's size. */
    note(holder: Holder, change: number): void {
      bytes += change
      if (holder.bytes() > 0) holders.add(holder)
      else holders.delete(holder)
    },
    bytesMax,
    holderToEvict,
    makeRoom,
    /** Call when memory becomes short, and when it no longer is. */
    saveMemory(isShortNow: boolean): void {
      isShort = isShortNow
      makeRoom(0)
    },
  })
}

export type RowBudget = ReturnType<typeof createRowBudget>

export function createRecentRows(budget: RowBudget) {
  const byId = new Map<string, CachedRow>()
  const byRid = new Map<number, CachedRow>()
  const frequencies = budget.frequencies()
  /** Kept between calls: finding the first entry of a Map costs one step for each entry deleted before it. */
  let hand = byId.values()
  let bytes = 0
  const grow = (change: number): void => {
    bytes += change
    budget.note(holder, change)
  }
  const forget = (id: string): void => {
    const entry = byId.get(id)
    if (entry === undefined) return
    byId.delete(id)
    byRid.delete(entry.row.rid)
    grow(-entry.bytes)
  }
  const atHand = (): CachedRow | undefined => {
    const { value: entry, done } = hand.next()
    if (done === true) hand = byId.values()
    return entry
  }
  const holder: Holder = {
    bytes: () => bytes,
    advanceHand() {
      const entry = atHand()
      if (entry?.isRead === true) entry.isRead = false
      else if (entry !== undefined) forget(entry.row.id)
    },
    evictIfRarer(often) {
      const entry = atHand() ?? atHand()
      if (entry === undefined || advantage * frequencies.of(entry.row.rid) >= often) return false
      forget(entry.row.id)
      return true
    },
  }
  /**
   * Makes room by evicting rows that searches read less often. Returns false when there are not enough of
   * them.
   */
  const hasRoom = (needed: number, often: number): boolean => {
    for (let most = budget.holderToEvict(needed); most !== undefined; most = budget.holderToEvict(needed))
      if (!most.evictIfRarer(often)) return false
    return true
  }
  const remember = (row: EntityRow): EntityRow => {
    forget(row.id)
    const size = bytesOf(row)
    budget.makeRoom(size)
    if (size > budget.bytesMax()) return row
    const entry = { row, bytes: size, isRead: false }
    byId.set(row.id, entry)
    byRid.set(row.rid, entry)
    grow(size)
    return row
  }
  const read = (entry: CachedRow | undefined): EntityRow | undefined => {
    if (entry !== undefined) entry.isRead = true
    return entry?.row
  }
  return Object.freeze({
    byId: (id: string) => read(byId.get(id)),
    byRid: (rid: number) => read(byRid.get(rid)),
    forget,
    forgetAll(): void {
      for (const id of [...byId.keys()]) forget(id)
    },
    remember,
    /** The cached row of a rid that a search needs. */
    forSearch(rid: number): EntityRow | undefined {
      const entry = byRid.get(rid)
      if (entry !== undefined) frequencies.note(rid)
      return read(entry)
    },
    /** Call with a row that a search had to read; caches it if it is read often enough. */
    admit(row: EntityRow): EntityRow {
      const often = frequencies.note(row.rid)
      return often > 2 && hasRoom(bytesOf(row), often) ? remember(row) : row
    },
    renew(row: EntityRow): void {
      const entry = byId.get(row.id)
      if (entry === undefined) return
      const size = bytesOf(row)
      grow(size - entry.bytes)
      entry.row = row
      entry.bytes = size
      budget.makeRoom(0)
    },
  })
}

/**
 * Approximate read counts per rid. Rids beyond `size` share counters, and all counts are halved from time to
 * time.
 */
function createFrequencies(size: number) {
  const counts = new Uint8Array(size)
  let sum = 0
  return {
    of: (rid: number): number => counts[rid % size]!,
    note(rid: number): number {
      const place = rid % size
      if (++sum > 2 * size) {
        for (let i = 0; i < size; i++) counts[i] = counts[i]! >> 1
        sum = 0
      }
      counts[place] = Math.min(255, counts[place]! + 1)
      return counts[place]
    },
  }
}

/** Distance between the counters of two tenants: a prime. */
const tenantOffset = 7919

/**
 * A new row must be read so many times as often as the row it evicts. Without this, rows of equal frequency
 * would keep replacing each other.
 */
const advantage = 2

/** Bytes of a row in memory. */
const bytesOf = ({ doc, sys, id }: EntityRow): number =>
  bytesOfText(doc) + bytesOfText(sys) + bytesOfText(id) + rowBytes

/** Memory of a row beside its characters: two objects, three strings, times, entries of two maps. */
const rowBytes = 360

/**
 * V8 stores a text with a character beyond Latin-1 in two bytes per character. It tests other texts without a
 * scan.
 */
const bytesOfText = (text: string): number => (isWide.test(text) ? 2 * text.length : text.length)
const isWide = /[^\0-\xff]/
