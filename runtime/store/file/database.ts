/**
 * Opens the database file of one tenant: sets pragmas and applies migrations. The main thread reads through
 * such a connection and never writes; the writer thread holds the only writing connection. `synchronous=FULL`
 * is set explicitly, because the library's WAL default (NORMAL) does not flush a commit.
 */

import { copyFileSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { GatewayError } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import { type Migration, migrations } from './database-schema.ts'
import { flush, place } from './durable-files.ts'

export type Database = BetterSqlite3.Database
export type Synchronous = 'FULL' | 'NORMAL' | 'OFF'

/**
 * Page cache of a connection, enough for the upper levels of the B-trees. A larger cache does not help:
 * frequently read data is cached as documents and columns, and the operating system caches the file. With 8
 * MB searches were slower.
 */
const cacheKib = 2048

/** Opens a read-only connection. The file must exist and have the current format. */
export function openReader(file: string): Database {
  return open(file, { readonly: true }, (database) => {
    database.pragma(`cache_size = -${cacheKib}`)
    database.pragma('query_only = 1')
  })
}

/**
 * Runs `read` in one read transaction, so that it sees one committed state. SQLite then also checks for new
 * commits only once. `read` must be synchronous.
 */
export function createSnapshot(database: Database): <T>(read: () => T) => T {
  const begin = database.prepare('BEGIN')
  const end = database.prepare('COMMIT')
  return (read) => {
    begin.run()
    try {
      return read()
    } finally {
      // A disk error may have ended the transaction.
      if (database.inTransaction) end.run()
    }
  }
}

/**
 * Opens the writing connection. `wal_autocheckpoint` is off because copy-back.ts decides when to checkpoint.
 */
export function openWriter(file: string, synchronous: Synchronous): Database {
  return open(file, {}, (database) => {
    database.pragma('journal_mode = WAL')
    database.pragma(`synchronous = ${synchronous}`)
    database.pragma('wal_autocheckpoint = 0')
    database.pragma(`cache_size = -${cacheKib}`)
    database.pragma('temp_store = MEMORY')
  })
}

/**
 * Migrates a tenant's file to the current format, or creates it. An older file is copied first, and the copy
 * is kept until all steps succeeded. Copies left by earlier attempts are then deleted too. Returns the
 * versions before and after.
 * @throws GatewayError store.newer for a file of a newer version, store.corrupt for a file that is no
 * database; store.full, store.failed.
 */
export function migrate(
  file: string,
  steps: readonly Migration[] = migrations,
): { from: number; to: number } {
  const to = steps.at(-1)!.version
  if (!existsSync(file)) {
    create(file, steps)
    return { from: 0, to }
  }
  const database = openWriter(file, 'FULL')
  try {
    const from = database.pragma('user_version', { simple: true }) as number
    if (from > to) {
      throw new GatewayError(
        'store.newer',
        `${file} has data format ${from}; this version supports up to ${to}`,
      )
    }
    if (from === to) {
      removeCopies(file)
      return { from, to }
    }
    if (from === 0) throw new GatewayError('store.corrupt', `${file} has no schema`, { file })
    database.pragma('wal_checkpoint(TRUNCATE)')
    copyFileSync(file, `${file}.format-${from}`)
    applySteps(
      database,
      steps.filter(({ version }) => version > from),
    )
    removeCopies(file)
    return { from, to }
  } catch (error) {
    throw storeError(file, error)
  } finally {
    database.close()
  }
}

function removeCopies(file: string): void {
  const start = `${basename(file)}.format-`
  for (const name of readdirSync(dirname(file)))
    if (name.startsWith(start) && /^\d+$/.test(name.slice(start.length)))
      rmSync(join(dirname(file), name), { force: true })
}

/**
 * Gives a new file its name only when it is complete and flushed, so a file without content is always a
 * damaged one. The steps are not flushed one by one, because an incomplete file is discarded.
 */
function create(file: string, steps: readonly Migration[]): void {
  const fresh = `${file}.fresh`
  for (const ending of ['', '-wal', '-shm']) rmSync(fresh + ending, { force: true })
  const database = openWriter(fresh, 'OFF')
  try {
    applySteps(database, steps)
    // Checkpoint here, because closing the database would not report a full disk.
    database.pragma('wal_checkpoint(TRUNCATE)')
    database.close()
    flush(fresh)
  } catch (error) {
    throw storeError(file, error)
  } finally {
    database.close()
  }
  place(fresh, file)
}

function applySteps(database: Database, steps: readonly Migration[]): void {
  for (const step of steps) {
    database.transaction(() => {
      database.exec(step.sql)
      database.pragma(`user_version = ${step.version}`)
    })()
    failpoint('migrate:between-steps')
  }
}

function open(file: string, options: BetterSqlite3.Options, prepare: (database: Database) => void): Database {
  let database: Database | undefined
  try {
    database = new BetterSqlite3(file, { timeout: 10_000, ...options })
    database.pragma('user_version')
    prepare(database)
    return database
  } catch (error) {
    database?.close()
    throw storeError(file, error)
  }
}

function storeError(file: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const { code = '', message } = error as { code?: string; message: string }
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    return new GatewayError('store.corrupt', `${file} is not a readable database`, { file }, error)
  }
  const entry = code === 'SQLITE_FULL' ? 'store.full' : 'store.failed'
  return new GatewayError(entry, `${file} cannot be used: ${message}`, { file }, error)
}
