/**
 * Checks a tenant's database before it is opened for writing: the file exists, was written by this product
 * and is readable. The check reads a bounded amount, because a start must not take minutes; backups read
 * everything. Nothing is repaired here.
 */
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { isGatewayError } from '#base/register/errors.ts'
import { type Database, openReader } from './database.ts'

/** Large tables, which the brief check of a large database skips. */
const largeTables = ['chunk', 'log', 'entity', 'entity_history', 'scalar']

/**
 * Describes the damage in words that follow the file name. Returns undefined when the file is sound, or never
 * existed.
 * @throws store.failed when the disk does not allow the file to be read; its state is then unknown.
 */
export function damageOf(
  file: string,
  { isExpected, isSuspect }: { readonly isExpected: boolean; readonly isSuspect: boolean },
): string | undefined {
  const facts = statSync(file, { throwIfNoEntry: false })
  if (facts === undefined) return isExpected || hasTraces(file) ? 'is missing' : undefined
  if (facts.size === 0) return 'is empty'
  try {
    const database = openReader(file)
    try {
      if (database.pragma('user_version', { simple: true }) === 0) return 'holds nothing'
      return isSuspect
        ? complaintOf(database, 'integrity_check(1)')
        : facts.size <= limits.checkedBytesMax.value
          ? complaintOf(database, 'quick_check(1)')
          : checkSmallTables(database)
    } finally {
      database.close()
    }
  } catch (error) {
    if (isGatewayError(error, 'store.corrupt')) return 'is not a readable database'
    const { code = '' } = error as { code?: string }
    if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) return 'is damaged'
    throw error
  }
}

/** True when a WAL without its database exists, or a database that was set aside as damaged. */
function hasTraces(file: string): boolean {
  const wal = statSync(`${file}-wal`, { throwIfNoEntry: false })
  if (wal !== undefined && wal.size > 0) return true
  const folder = dirname(file)
  return (
    existsSync(folder) && readdirSync(folder).some((name) => name.startsWith(`${basename(file)}.damaged-`))
  )
}

function complaintOf(database: Database, check: string): string | undefined {
  const found = database.pragma(check, { simple: true })
  return found === 'ok' ? undefined : `is damaged: ${String(found).split('\n', 1)[0]}`
}

/** Checks the small tables one by one until the time is used up. */
function checkSmallTables(database: Database): string | undefined {
  const until = performance.now() + limits.checkedMs.value
  const names = database
    .prepare<[], string>(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'`,
    )
    .pluck()
    .all()
  for (const name of names) {
    if (performance.now() > until) return undefined
    if (largeTables.includes(name) || !/^[a-z_]+$/.test(name)) continue
    const complaint = complaintOf(database, `quick_check('${name}')`)
    if (complaint !== undefined) return complaint
  }
  return undefined
}

/**
 * Offsets in the WAL index (https://sqlite.org/walformat.html): its header, and the number of frames copied
 * back.
 */
const at = { pageSize: 14, lastFrame: 16, salt: 32, copiedBack: 96, end: 100 } as const
const walHeaderBytes = 32
const walSaltAt = 16
const frameHeaderBytes = 24

/**
 * Returns how many flushed pages of the WAL are missing. The WAL index that a killed process leaves behind
 * holds their number. SQLite itself takes a truncated WAL for one that ends there.
 */
export function lostFrames(file: string): number {
  const index = beginningOf(`${file}-shm`, at.end)
  if (index === undefined || index.length < at.end) return 0
  const pageSize = index.readUInt16LE(at.pageSize)
  const last = index.readUInt32LE(at.lastFrame)
  if (last === 0 || pageSize === 0 || index.readUInt32LE(at.copiedBack) >= last) return 0
  const wal = beginningOf(`${file}-wal`, walHeaderBytes)
  const salt = index.subarray(at.salt, at.salt + 8)
  const isSame = wal?.subarray(walSaltAt, walSaltAt + 8).equals(salt) ?? true
  if (wal !== undefined && wal.length === walHeaderBytes && !isSame) return 0
  const bytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  const frames = Math.floor(Math.max(0, bytes - walHeaderBytes) / (pageSize + frameHeaderBytes))
  return Math.max(0, last - frames)
}

function beginningOf(file: string, bytes: number): Buffer | undefined {
  if (!existsSync(file)) return undefined
  const descriptor = openSync(file, 'r')
  try {
    const block = Buffer.alloc(bytes)
    return block.subarray(0, readSync(descriptor, block))
  } finally {
    closeSync(descriptor)
  }
}
