/**
 * The write-ahead log of a plugin's file. The writer thread copies it back and begins the next one, because that flushes and
 * the main thread must not wait for a disk. Long works wait once it is twice as long as it may be, or could not be ended
 * because they went on: so it stays bounded.
 */
import { statSync } from 'node:fs'
import type BetterSqlite3 from 'better-sqlite3'
import { limits } from '#base/limits/limits.ts'
import { walFrameBytes } from '#store/file/copy-back.ts'

/**
 * Copies the log of a file back and ends it, on another thread; false where somebody wrote or read there meanwhile, so that it
 * goes on. @throws GatewayError store.full, store.unwritable, store.failed.
 */
export type CopyBackFile = (file: string) => Promise<boolean>

export interface PluginLog {
  /** To be called after a transaction. */
  look(): void
  /** Settles at once while the log is short. @throws GatewayError what copying back failed with, while it is too long. */
  wait(): Promise<void>
  /** Settles when nothing is copied any more; only then may the file be taken away. */
  end(): Promise<void>
  /** The same, for good. */
  close(): Promise<void>
}

/** Of works that go on meanwhile, a second round copies what they wrote during the first, and they wait for it. */
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
  let lookAt = 0

  /** Pages that its file has room for, of which the last ones may not be in use. */
  function room(): number {
    try {
      return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) / walFrameBytes
    } catch {
      // A disk that cannot be read now; a later look tells.
      return 0
    }
  }

  function pages(): number {
    try {
      return (database().pragma('wal_checkpoint(NOOP)') as { log: number }[])[0]?.log ?? 0
    } catch {
      // A statement is under way; the next look tells.
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
    if (now < lookAt || database().inTransaction) return
    if (pages() < limits.pluginWalPages.value) {
      lookAt = now + limits.walCheckMs.value
      return
    }
    copying = copy()
      .then(() => {
        failure = undefined
      })
      .catch((error: Error) => {
        failure = error
        lookAt = performance.now() + limits.pluginWalRetryMs.value
      })
      .finally(() => {
        copying = undefined
        isHeld = false
      })
  }

  // What is written without a transaction makes it longer, too.
  const looking = setInterval(look, limits.pluginWalCheckMs.value).unref()

  return Object.freeze({
    look,
    async wait() {
      if (copying === undefined && failure === undefined) return
      // While it is copied only its file can be asked.
      const isLong = room() >= 2 * limits.pluginWalPages.value
      if (copying !== undefined && (isHeld || isLong)) await copying
      if (failure === undefined || !isLong) return
      look()
      throw failure
    },
    end: async () => copying,
    async close() {
      clearInterval(looking)
      await copying
    },
  } satisfies PluginLog)
}
