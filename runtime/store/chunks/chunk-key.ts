/**
 * The key of a chunk packs stream and time into one 63-bit rowid, so that the chunk is stored inline in its
 * B-tree page: k = (stream << 41) | slot. A slot is 256 ms, counted from year 0. Two chunks of one stream
 * never share a slot.
 */

const slotMs = 256
/** 0000-01-01T00:00:00Z */
const slotEpochMs = -62_167_219_200_000

/** SQL that builds the key from a stream number and a slot. */
export const keySql = (stream: string, slot: string): string => `((${stream} << 41) | ${slot})`

/** SQL that extracts the stream number from a key. */
export const streamSql = (key: string): string => `(${key} >> 41)`

/** Slot of a time in ms; fits in 41 bits for every DateTime of the years 0000 to 9999. */
export function slotOf(ms: number): number {
  return Math.floor((ms - slotEpochMs) / slotMs)
}

/** The stream number of a key. */
export const streamOfKey = (key: bigint): number => Number(key >> 41n)

export const slotMax = 2 ** 41 - 1
