/**
 * Opens the database file of one tenant: pragmas, migrations forward, integrity. The main thread reads through
 * such a connection and never writes; the writer thread holds the only one that does. `synchronous=FULL` is set
 * explicitly, because the library's WAL default (NORMAL) does not flush a commit.
 */

import { copyFileSync, existsSync, rmSync } from 'node:fs'
import BetterSqlite3 from 'better-sqlite3'
import { GatewayError } from '#base/errors.ts'
import { failpoint } from '#base/failpoints.ts'
import { formatVersion, migrations } from './schema.ts'

export type Database = BetterSqlite3.Database
export type Synchronous = 'FULL' | 'NORMAL' | 'OFF'

/** How much of the page cache a connection may hold. */
const cacheKib = { writer: 8192, reader: 8192 } as const

/** A connection that only reads. The file must exist and have the current format. */
export function openReader(file: string): Database {
  const database = open(file, { readonly: true })
  database.pragma(`cache_size = -${cacheKib.reader}`)
  database.pragma('query_only = 1')
  return database
}

/** The connection that writes. Checkpoints are its own business: `wal_autocheckpoint` is off. */
export function openWriter(file: string, synchronous: Synchronous): Database {
  const database = open(file, {})
  database.pragma('journal_mode = WAL')
  database.pragma(`synchronous = ${synchronous}`)
  database.pragma('wal_autocheckpoint = 0')
  database.pragma(`cache_size = -${cacheKib.writer}`)
  database.pragma('temp_store = MEMORY')
  return database
}

/**
 * Brings a tenant's file to the current format, creating it when absent. An older file is copied first and the
 * copy is kept until all steps are through. Returns the versions before and after.
 * @throws GatewayError store.newer when the file is from a newer version, store.corrupt when it is no database.
 */
export function migrate(file: string): { from: number; to: number } {
  const fresh = !existsSync(file)
  const database = openWriter(file, 'FULL')
  try {
    const from = database.pragma('user_version', { simple: true }) as number
    if (from > formatVersion) {
      throw new GatewayError(
        'store.newer',
        `${file} has data format ${from}; this version knows ${formatVersion}`,
      )
    }
    if (from === formatVersion) return { from, to: from }
    const copy = `${file}.format-${from}`
    if (!fresh && from > 0) {
      database.pragma('wal_checkpoint(TRUNCATE)')
      copyFileSync(file, copy)
    }
    for (const step of migrations) {
      if (step.version <= from) continue
      database.transaction(() => {
        database.exec(step.sql)
        database.pragma(`user_version = ${step.version}`)
      })()
      failpoint('migrate:between-steps')
    }
    rmSync(copy, { force: true })
    return { from, to: formatVersion }
  } finally {
    database.close()
  }
}

function open(file: string, options: BetterSqlite3.Options): Database {
  try {
    const database = new BetterSqlite3(file, { timeout: 10_000, ...options })
    database.pragma('user_version')
    return database
  } catch (error) {
    const code = (error as { code?: string }).code
    if (code === 'SQLITE_NOTADB' || code === 'SQLITE_CORRUPT') {
      throw new GatewayError('store.corrupt', `${file} is no readable database`, { file }, error)
    }
    throw new GatewayError(
      'store.failed',
      `${file} cannot be opened: ${(error as Error).message}`,
      { file },
      error,
    )
  }
}
