/**
 * Rows of entities read lately, within a bound of bytes. What is asked for by its id comes in, and a hand goes round for it: what
 * was not read since it last came by leaves. What searches meet comes in where they meet it twice as often as what would leave for
 * it, so that the same rows stay while searches go over many more than there is room for (TinyLFU: Einziger et al., 2017).
 */
import { limits } from '#base/limits.ts'
import type { EntityRow } from './entities.ts'

/** A row kept in memory, and whether it was read since the hand came by. */
interface Recent {
  row: EntityRow
  isRead: boolean
}

export function createRecentRows() {
  const byId = new Map<string, Recent>()
  const byRid = new Map<number, Recent>()
  const meetings = createMeetings(limits.rowsMetMax.value)
  /** It stays where it is between two looks, because to find the first of a map costs a step for each that left before it. */
  let hand = byId.values()
  let bytes = 0
  const forget = (id: string): void => {
    const entry = byId.get(id)
    if (entry === undefined) return
    byId.delete(id)
    byRid.delete(entry.row.rid)
    bytes -= bytesOf(entry.row)
  }
  const atHand = (): Recent | undefined => {
    const { value: entry, done } = hand.next()
    if (done === true) hand = byId.values()
    return entry
  }
  const makeRoom = (needed: number): void => {
    while (byId.size > 0 && bytes + needed > limits.documentsCachedBytes.value) {
      const entry = atHand()
      if (entry?.isRead === true) entry.isRead = false
      else if (entry !== undefined) forget(entry.row.id)
    }
  }
  /** Whether there is room for a row that was met so often, now that those left which were met less often. */
  const hasRoom = (row: EntityRow, often: number): boolean => {
    while (bytes + bytesOf(row) > limits.documentsCachedBytes.value) {
      const entry = atHand() ?? atHand()
      if (entry === undefined || advantage * meetings.of(entry.row.rid) >= often) return false
      forget(entry.row.id)
    }
    return true
  }
  const remember = (row: EntityRow): EntityRow => {
    forget(row.id)
    const size = bytesOf(row)
    makeRoom(size)
    if (size > limits.documentsCachedBytes.value) return row
    const entry = { row, isRead: false }
    byId.set(row.id, entry)
    byRid.set(row.rid, entry)
    bytes += size
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
      return often > 2 && hasRoom(row, often) ? remember(row) : row
    },
    renew(row: EntityRow): void {
      const entry = byId.get(row.id)
      if (entry === undefined) return
      bytes += bytesOf(row) - bytesOf(entry.row)
      entry.row = row
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

/** What comes in was met so many times as often as what leaves for it: rows that are met alike would only take turns. */
const advantage = 2

/** What a row holds in memory, about. */
const bytesOf = (row: EntityRow): number => row.doc.length + row.sys.length + row.id.length + 200
