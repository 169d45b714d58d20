/**
 * Whether a tenant's database is what it has to be before it is opened for writing: there, of our making, and readable. How
 * much is read has a bound, since a start must not take minutes; backups read everything. Nothing is mended here.
 */
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { isGatewayError } from '#base/register/errors.ts'
import { type Database, openReader } from './database.ts'

/** What is looked at first of a database that is too large to be read through at once. */
const largeTables = ['chunk', 'log', 'entity', 'entity_history', 'scalar']

/**
 * What is wrong with the file, in words that follow its name; undefined when nothing is, or when there never was one.
 * @throws store.failed when the disk does not let it be read: then nobody knows.
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
          : briefly(database)
    } finally {
      database.close()
    }
  } catch (error) {
    if (isGatewayError(error, 'store.corrupt')) return 'is no readable database'
    const { code = '' } = error as { code?: string }
    if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) return 'is damaged'
    throw error
  }
}

/** A log without its database, or one that was set aside. */
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

/** Tables one by one, the small ones, as long as there is time. */
function briefly(database: Database): string | undefined {
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

/** Offsets in the index of the log (https://sqlite.org/walformat.html): its header, and how much was copied back. */
const at = { pageSize: 14, lastFrame: 16, salt: 32, copiedBack: 96, end: 100 } as const
const walHeaderBytes = 32
const walSaltAt = 16
const frameHeaderBytes = 24

/**
 * How many pages of the write-ahead log are gone that were flushed once: its index, as a killed process leaves it, knows
 * how many there were. SQLite itself takes a log that was cut off for one that ends there.
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
