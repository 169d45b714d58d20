/**
 * The lock of a data folder: one gateway at a time. It is an operating system lock on a small file, held as
 * long as the process lives. A killed process therefore never blocks the next start.
 */

import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'

/**
 * Connections that hold a lock. An unreferenced connection would be garbage-collected and closed, which would
 * release its lock.
 */
const held = new Set<BetterSqlite3.Database>()

/**
 * Creates the folder if it is absent (mode 0700) and locks it. Returns a function that releases the lock.
 * @throws GatewayError store.locked when another process holds the lock, store.failed when the folder cannot
 * be used.
 */
export function lockFolder(folder: string): () => void {
  let file: BetterSqlite3.Database | undefined
  try {
    makeFolder(folder)
    file = new BetterSqlite3(join(folder, 'lock'), { timeout: 0 })
    file.pragma('journal_mode = MEMORY')
    file.exec('BEGIN EXCLUSIVE')
    const lock = file
    held.add(lock)
    return () => {
      held.delete(lock)
      lock.close()
    }
  } catch (error) {
    file?.close()
    const { code = '', message } = error as { code?: string; message: string }
    if (code.startsWith('SQLITE_BUSY')) {
      throw new GatewayError(
        'store.locked',
        `another gateway uses the data folder ${folder}`,
        { folder },
        error,
      )
    }
    throw new GatewayError(
      'store.failed',
      `the data folder ${folder} cannot be used: ${message}`,
      { folder },
      error,
    )
  }
}

/**
 * Locks the folder like `lockFolder`, but returns undefined when a gateway holds the lock.
 * @throws store.failed
 */
export function lockUnlessInUse(folder: string): (() => void) | undefined {
  try {
    return lockFolder(folder)
  } catch (error) {
    if (isGatewayError(error, 'store.locked')) return undefined
    throw error
  }
}

/**
 * Creates a folder parent by parent. A recursive mkdir never returns where a parent accepts no folders
 * (/proc).
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  const parent = dirname(folder)
  if (parent !== folder) makeFolder(parent)
  mkdirSync(folder, { mode: 0o700 })
}
