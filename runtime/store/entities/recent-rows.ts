/**
 * Rows of entities read lately, within a bound of bytes for all tenants together. What is asked for by its id comes in, and a hand
 * goes round for it where most is kept: what was not read since it last came by leaves. What searches meet comes in where they meet
 * it more than twice as often as what would leave for it, so that the same rows stay while searches go over many more than there
 * is room for (TinyLFU: Einziger et al., 2017).
 */
import { limits } from '#base/limits/limits.ts'
import type { EntityRow } from './page-rows.ts'

/** A row kept in memory, what it takes there, and whether it was read since the hand came by. */
interface Recent {
  row: EntityRow
  bytes: number
  isRead: boolean
}

/** Rows of one tenant, as the budget sees them. */
interface Holder {
  readonly bytes: () => number
  /** Its hand goes on by one. */
  readonly shed: () => void
  /** Lets one go that was met less often; false where the next one was not. */
  readonly yields: (often: number) => boolean
}

/** What the rows of all tenants take, and how often searches met them: of a tenant that is not searched any more less and less. */
export function createRowBudget() {
  const holders = new Set<Holder>()
  const meetings = createMeetings(limits.rowFrequenciesMax.value)
  let opened = 0
  let bytes = 0
  return Object.freeze({
    /** For one more tenant: the same rids of two are counted apart as far as there is room. */
    meetings() {
      const first = opened++ * ridsApart
      return {
        of: (rid: number) => meetings.of(first + rid),
        note: (rid: number) => meetings.note(first + rid),
      }
    },
    /** To be told of every change of what one holds. */
    note(holder: Holder, change: number): void {
      bytes += change
      if (holder.bytes() > 0) holders.add(holder)
      else holders.delete(holder)
    },
    /** Who has to give way before so many bytes come in: the one that holds most. Undefined where there is room, or nobody. */
    inTheWay(needed: number): Holder | undefined {
      if (bytes + needed <= limits.documentsCachedBytes.value) return undefined
      let most: Holder | undefined
      for (const holder of holders) if (most === undefined || holder.bytes() > most.bytes()) most = holder
      return most
    },
  })
}

export type RowBudget = ReturnType<typeof createRowBudget>

export function createRecentRows(budget: RowBudget) {
  const byId = new Map<string, Recent>()
  const byRid = new Map<number, Recent>()
  const meetings = budget.meetings()
  /** It stays where it is between two looks, because to find the first of a map costs a step for each that left before it. */
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
  const atHand = (): Recent | undefined => {
    const { value: entry, done } = hand.next()
    if (done === true) hand = byId.values()
    return entry
  }
  const holder: Holder = {
    bytes: () => bytes,
    shed() {
      const entry = atHand()
      if (entry?.isRead === true) entry.isRead = false
      else if (entry !== undefined) forget(entry.row.id)
    },
    yields(often) {
      const entry = atHand() ?? atHand()
      if (entry === undefined || advantage * meetings.of(entry.row.rid) >= often) return false
      forget(entry.row.id)
      return true
    },
  }
  const makeRoom = (needed: number): void => {
    for (let most = budget.inTheWay(needed); most !== undefined; most = budget.inTheWay(needed)) most.shed()
  }
  /** Whether there is room for a row that was met so often, now that those left which were met less often. */
  const hasRoom = (needed: number, often: number): boolean => {
    for (let most = budget.inTheWay(needed); most !== undefined; most = budget.inTheWay(needed))
      if (!most.yields(often)) return false
    return true
  }
  const remember = (row: EntityRow): EntityRow => {
    forget(row.id)
    const size = bytesOf(row)
    makeRoom(size)
    if (size > limits.documentsCachedBytes.value) return row
    const entry = { row, bytes: size, isRead: false }
    byId.set(row.id, entry)
    byRid.set(row.rid, entry)
    grow(size)
    return row
  }
  const read = (entry: Recent | undefined): EntityRow | undefined => {
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
    /** A row that a search meets, where it is known. */
    met(rid: number): EntityRow | undefined {
      const entry = byRid.get(rid)
      if (entry !== undefined) meetings.note(rid)
      return read(entry)
    },
    /** A row that a search met and had to read. */
    meet(row: EntityRow): EntityRow {
      const often = meetings.note(row.rid)
      return often > 2 && hasRoom(bytesOf(row), often) ? remember(row) : row
    },
    renew(row: EntityRow): void {
      const entry = byId.get(row.id)
      if (entry === undefined) return
      const size = bytesOf(row)
      grow(size - entry.bytes)
      entry.row = row
      entry.bytes = size
      makeRoom(0)
    },
  })
}

/** How often rids were met lately; those beyond `size` share their numbers with others, and all are halved now and then. */
function createMeetings(size: number) {
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

/** Between the counts of one tenant and those of the next: a prime. */
const ridsApart = 7919

/** What comes in was met so many times as often as what leaves for it: rows that are met alike would only take turns. */
const advantage = 2

/** What a row holds in memory, about. */
const bytesOf = ({ doc, sys, id }: EntityRow): number =>
  bytesOfText(doc) + bytesOfText(sys) + bytesOfText(id) + 200

/** V8 keeps a text with a character beyond Latin-1 by two bytes each; it knows of the others without looking at them. */
const bytesOfText = (text: string): number => (isWide.test(text) ? 2 * text.length : text.length)
const isWide = /[^\0-\xff]/
