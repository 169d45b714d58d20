/**
 * The SQLite file of one plugin: the data it derived from changes, its cursor, and its own records. It
 * commits with synchronous=NORMAL, because the log still has what a power cut takes away; cursor and derived
 * data roll back together. A damaged file is set aside and created anew, by the next start if the damage
 * shows later. No commit flushes: another thread checkpoints its WAL (`plugin-log.ts`), and a plugin that
 * acknowledges something waits for `flushed`.
 */

import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import BetterSqlite3 from 'better-sqlite3'
import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { PluginDatabase } from '#contract'
import { createHeldCommits } from './held-commits.ts'
import { type CopyBackFile, createPluginLog } from './plugin-log.ts'

export interface PluginFile extends PluginDatabase {
  /** True when a damaged file was set aside. */
  readonly isRenewed: boolean
  close(): Promise<void>
}

const endings = ['', '-wal', '-shm']

/**
 * Opens the file and applies the missing steps; creates it when absent.
 * @throws GatewayError store.newer when the file has more steps than these, store.failed when it cannot be
 * used.
 */
export function openPluginFile(file: string, steps: readonly string[], copyBack: CopyBackFile): PluginFile {
  let isRenewed = false
  let database: BetterSqlite3.Database
  try {
    database = openDatabase(file, steps)
  } catch (error) {
    if (!isDamage(error)) throw storeError(file, error)
    setAside(file)
    isRenewed = true
    database = openDatabase(file, steps)
  }
  const log = createPluginLog(file, { database: () => database, copyBack })
  const holding = createHeldCommits(() => database, log)
  const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return Object.freeze({
    isRenewed,
    prepare: (sql) => database.prepare(sql) as unknown as ReturnType<PluginDatabase['prepare']>,
    transaction(work) {
      // BEGIN IMMEDIATE: a transaction that reads first and then writes fails without waiting while a WAL is
      // being ended.
      const run = database.transaction(work as never).immediate as unknown as typeof work
      const looking: typeof work = (...given) => {
        const result = holding.run(() => run(...(given as never)))
        log.look()
        return result
      }
      return looking
    },
    holdCommits: holding.begin,
    commit: holding.commit,
    async rest() {
      await nextTurn()
      await log.wait()
    },
    async flushed() {
      // Without a WAL, a checkpoint has flushed all of it.
      const wal = await open(`${file}-wal`).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw storeError(file, error)
      })
      try {
        await wal?.datasync()
      } catch (error) {
        throw storeError(file, error)
      } finally {
        await wal?.close()
      }
    },
    bytes: () => sizeOf(file) + sizeOf(`${file}-wal`),
    async reset() {
      await log.end()
      holding.commit()
      database.close()
      for (const ending of endings) rmSync(file + ending, { force: true })
      database = openDatabase(file, steps)
    },
    async close() {
      await log.close()
      holding.end()
      database.close()
    },
  } satisfies PluginFile)
}

function openDatabase(file: string, steps: readonly string[]): BetterSqlite3.Database {
  const database = new BetterSqlite3(file, { timeout: 10_000 })
  try {
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = NORMAL')
    database.pragma('wal_autocheckpoint = 0')
    database.pragma(`cache_size = -${limits.pluginCacheKib.value}`)
    database.pragma('temp_store = MEMORY')
    const from = database.pragma('user_version', { simple: true }) as number
    if (from > steps.length)
      throw new GatewayError(
        'store.newer',
        `${file} has format ${from}; this version supports up to ${steps.length}`,
      )
    for (const [i, step] of steps.entries()) {
      if (i < from) continue
      database.transaction(() => {
        database.exec(step)
        database.pragma(`user_version = ${i + 1}`)
      })()
    }
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * Sets aside a file that nobody has open, if the error reports damage and a full integrity check confirms it.
 * Opening a file does not check the content of its pages. Returns true when the file was set aside.
 */
export function setAsideDamaged(file: string, error: unknown): boolean {
  if (!isDamage(error) || !existsSync(file) || isWhole(file)) return false
  setAside(file)
  return true
}

function setAside(file: string): void {
  for (const ending of endings)
    if (existsSync(file + ending)) renameSync(file + ending, `${file}.damaged${ending}`)
}

function isWhole(file: string): boolean {
  const database = new BetterSqlite3(file)
  try {
    return database.pragma('integrity_check(1)', { simple: true }) === 'ok'
  } catch (error) {
    return !isDamage(error)
  } finally {
    database.close()
  }
}

function isDamage(error: unknown): boolean {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown }
  if (typeof code === 'string' && (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT'))) return true
  return cause instanceof Error && isDamage(cause)
}

function storeError(file: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  return new GatewayError(
    'store.failed',
    `${file} cannot be used: ${(error as Error).message}`,
    { file },
    error,
  )
}
