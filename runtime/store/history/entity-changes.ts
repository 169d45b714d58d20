/**
 * A part of an entity's change history: log records as logged, one JSON object per line. A part is plain
 * text while it is open and small, so that records can be appended cheaply. A full part is compressed once
 * (zstd).
 */
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { EntityHistoryRow } from './history-rows.ts'

const openRecordsMax = 64
const openBytesMax = 8192
/** First byte of a JSON object; zstd data begins with another byte. */
const brace = 0x7b

export function encodeEntityChanges(records: readonly string[]): Uint8Array {
  const text = Buffer.from(records.join('\n'))
  return records.length < openRecordsMax && text.length < openBytesMax ? text : zstdCompressSync(text)
}

/** True for a part to which records can be appended. */
export const isOpen = ({ body }: Pick<EntityHistoryRow, 'body'>): boolean => body[0] === brace

/** The records of a part, oldest first. */
export function decodeEntityChanges(row: Pick<EntityHistoryRow, 'body'>): string[] {
  const text = isOpen(row) ? row.body : zstdDecompressSync(row.body)
  return Buffer.from(text).toString().split('\n')
}
