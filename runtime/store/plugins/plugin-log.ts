/**
 * Bounds the write-ahead log (WAL) of a plugin's file. The writer thread checkpoints it, because a checkpoint
 * flushes and the main thread must not wait for a disk. Long-running work waits once the WAL is twice its
 * limit, or when concurrent work kept a checkpoint from ending it.
 */
import { statSync } from 'node:fs'
import type BetterSqlite3 from 'better-sqlite3'
import { limits } from '#base/limits/limits.ts'
import { walFrameBytes } from '#store/file/copy-back.ts'

/**
 * Checkpoints and ends the WAL of a file on another thread. Resolves to false when another connection wrote
 * or read meanwhile, so that the WAL continues.
 * @throws GatewayError store.full, store.unwritable, store.failed.
 */
export type CopyBackFile = (file: string) => Promise<boolean>

export interface PluginLog {
  /** Whether the WAL is short and nothing checkpoints it, so a transaction may remain open. */
  isShort(): boolean
  /** Call after a transaction. */
  look(): void
  /**
   * Resolves at once while the WAL is short.
   * @throws GatewayError the last checkpoint error, while the WAL is too long.
   */
  wait(): Promise<void>
  /** Resolves when no checkpoint is running; only then may the file be deleted. */
  end(): Promise<void>
  /** Like `end`, and stops checking. */
  close(): Promise<void>
}

/** A second round copies what was written during the first; long-running work waits for it. */
const roundsMax = 3

export function createPluginLog(
  file: string,
  {
    database,
    copyBack,
  }: { readonly database: () => BetterSqlite3.Database; readonly copyBack: CopyBackFile },
): PluginLog {
  let copying: Promise<void> | undefined
  let isHeld = false
  let failure: Error | undefined
  let nextCheckAt = 0

  /** Pages that the WAL file has space for; the last ones may be unused. */
  function room(): number {
    try {
      return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) / walFrameBytes
    } catch {
      // The disk cannot be read now; a later check will find out.
      return 0
    }
  }

  function pages(): number {
    try {
      return (database().pragma('wal_checkpoint(NOOP)') as { log: number }[])[0]?.log ?? 0
    } catch {
      // A statement is running; the next check will find out.
      return 0
    }
  }

  async function copy(): Promise<void> {
    for (let round = 1; round <= roundsMax; round++) {
      if (await copyBack(file)) return
      isHeld = true
    }
  }

  function look(): void {
    if (copying !== undefined || room() < limits.pluginWalPages.value) return
    const now = performance.now()
    if (now < nextCheckAt || database().inTransaction) return
    if (pages() < limits.pluginWalPages.value) {
      nextCheckAt = now + limits.walCheckMs.value
      return
    }
    copying = copy()
      .then(() => {
        failure = undefined
      })
      .catch((error: Error) => {
        failure = error
        nextCheckAt = performance.now() + limits.pluginWalRetryMs.value
      })
      .finally(() => {
        copying = undefined
        isHeld = false
      })
  }

  // Writes without a transaction also grow the WAL.
  const checking = setInterval(look, limits.pluginWalCheckMs.value).unref()

  return Object.freeze({
    isShort: () => copying === undefined && room() < limits.pluginWalPages.value,
    look,
    async wait() {
      if (copying === undefined && failure === undefined) return
      // While a checkpoint runs, only the file size can be read.
      const isLong = room() >= 2 * limits.pluginWalPages.value
      if (copying !== undefined && (isHeld || isLong)) await copying
      if (failure === undefined || !isLong) return
      look()
      throw failure
    },
    end: async () => copying,
    async close() {
      clearInterval(checking)
      await copying
    },
  } satisfies PluginLog)
}
