/**
 * Lets the transactions of a plugin's file share one that is committed now and then. Changes that are spread
 * over the file write each page once per interval instead of once per transaction. Only for derived data: the
 * cursor is in the same transaction, so a kill takes both away and the log is read again from there.
 */
import type BetterSqlite3 from 'better-sqlite3'
import { limits } from '#base/limits/limits.ts'
import type { PluginLog } from './plugin-log.ts'

export function createHeldCommits(database: () => BetterSqlite3.Database, log: Pick<PluginLog, 'isShort'>) {
  let onLoss: (() => void) | undefined
  let isHeld = false
  let committing: NodeJS.Timeout | undefined

  /** A full or failing disk rolls back the shared transaction, not only the failed statement. */
  function noticeLoss(): void {
    if (!isHeld || database().inTransaction) return
    isHeld = false
    if (onLoss !== undefined) setImmediate(onLoss)
  }

  function commit(): void {
    if (!isHeld) return
    try {
      database().exec('COMMIT')
      isHeld = false
    } finally {
      noticeLoss()
    }
  }

  /** Tries later if the disk fails now: the transaction remains open or its loss is reported. */
  function tryCommit(): void {
    try {
      commit()
    } catch {
      // `noticeLoss` has reported it, or the next interval tries again.
    }
  }

  return Object.freeze({
    begin(given: () => void): void {
      onLoss = given
      committing ??= setInterval(tryCommit, limits.pluginHoldMs.value).unref()
    },
    commit,
    /** Runs a transaction, within the shared one if commits are held. */
    run<T>(transaction: () => T): T {
      if (onLoss === undefined) return transaction()
      if (!log.isShort()) commit()
      else if (!isHeld) {
        database().exec('BEGIN IMMEDIATE')
        isHeld = true
      }
      try {
        return transaction()
      } finally {
        noticeLoss()
      }
    },
    end(): void {
      clearInterval(committing)
      tryCommit()
    },
  })
}
