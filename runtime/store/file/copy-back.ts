/**
 * Controls when the write-ahead log (WAL) of one database is checkpointed into the database file. Committed
 * pages must always fit into that file: a WAL that cannot be checkpointed cannot be truncated, so a full disk
 * would stay full. A commit that would leave less free space than the file still has to grow by is therefore
 * refused.
 */
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { type Database, openWriter } from './database.ts'

/** Size of one WAL frame: a page with its header. */
export const walFrameBytes = 4120

export interface CopyBack {
  /** Call before a transaction begins. */
  begin(): void
  /**
   * Call before a commit: true when the database file has room for the pages of this commit. If the file
   * grows, `keptBytes` remain on the disk; twice as many remain in any case, with the free pages of the file.
   */
  hasRoom(keptBytes: number): boolean
  /** Call after a commit: checkpoints when the WAL exceeds its limit. A limit of 0 also truncates the WAL. */
  after(walBytesMax: number): void
  /** Checkpoints and truncates the WAL as far as readers allow. Returns true when that freed disk space. */
  cutOff(): boolean
}

export function createCopyBack(database: Database, file: string, onCopied: () => void): CopyBack {
  const pageCount = database.prepare('PRAGMA page_count').pluck()
  const freePages = database.prepare('PRAGMA freelist_count').pluck()
  const pageBytes = database.pragma('page_size', { simple: true }) as number
  const wait = database.pragma('busy_timeout', { simple: true }) as number
  const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  const walBytes = (): number => sizeOf(`${file}-wal`)
  let bytesBefore = 0
  let nextCheckAt = 0

  /** Size of the file after a complete checkpoint. */
  const wholeBytes = (): number => (pageCount.get() as number) * pageBytes

  /**
   * Returns the number of pages in the WAL. A failed checkpoint loses nothing and is retried with a later
   * commit. On a full disk the commits fail too, and they report the error.
   */
  function checkpoint(mode: 'NOOP' | 'PASSIVE' | 'TRUNCATE'): number {
    try {
      return (database.pragma(`wal_checkpoint(${mode})`) as { log: number }[])[0]?.log ?? 0
    } catch {
      return 0
    }
  }

  function cutOff(): boolean {
    const before = walBytes()
    if (before === 0) return false
    // Do not wait for a long reader such as a backup. In that case the WAL is checkpointed but not truncated.
    database.pragma('busy_timeout = 0')
    checkpoint('TRUNCATE')
    database.pragma(`busy_timeout = ${wait}`)
    return walBytes() < before
  }

  return Object.freeze({
    begin() {
      bytesBefore = wholeBytes()
    },
    hasRoom(keptBytes) {
      const grown = Math.max(0, wholeBytes() - bytesBefore)
      if (grown === 0 && keptBytes === 0) return true
      const ungrown = Math.max(0, bytesBefore - sizeOf(file))
      const { bavail, bsize } = statfsSync(dirname(file))
      // New pages take space twice: in the WAL and in the database file.
      const left = bavail * bsize - ungrown - 2 * grown
      if (grown > 0 && left < keptBytes) return false
      return keptBytes === 0 || left + (freePages.get() as number) * pageBytes >= 2 * keptBytes
    },
    after(walBytesMax) {
      if (walBytesMax === 0) {
        cutOff()
        return
      }
      const now = performance.now()
      if (now < nextCheckAt) return
      const isRoomy = walBytesMax >= limits.walPagesMax.value * walFrameBytes
      nextCheckAt = isRoomy ? now + limits.walCheckMs.value : 0
      if (checkpoint('NOOP') * walFrameBytes < walBytesMax) return
      checkpoint('PASSIVE')
      onCopied()
    },
    cutOff,
  } satisfies CopyBack)
}

/**
 * Checkpoints and truncates the WAL of a file that another connection writes, and starts the next WAL.
 * Returns false when another connection writes or reads meanwhile; the old WAL then continues. SQLite keeps
 * the required order: flush the WAL, copy it, flush the file, truncate the WAL, write the header of the next
 * WAL. A power cut therefore leaves only complete WALs, and the writer needs no flush of its own. Copying
 * blocks nobody; only the flush of the new header does.
 */
export function endLog(file: string): boolean {
  const database = openWriter(file, 'NORMAL')
  const checkpoint = (mode: 'PASSIVE' | 'NOOP' | 'TRUNCATE'): Checkpointed =>
    (database.pragma(`wal_checkpoint(${mode})`) as Checkpointed[])[0]!
  try {
    const { log, checkpointed } = checkpoint('PASSIVE')
    if (checkpointed < log || checkpoint('NOOP').log !== log) return false
    database.pragma('busy_timeout = 0')
    if (checkpoint('TRUNCATE').busy !== 0) return false
    // The smallest possible write.
    database.pragma(`user_version = ${database.pragma('user_version', { simple: true })}`)
    return true
  } catch (error) {
    if ((error as { readonly code?: string }).code?.startsWith('SQLITE_BUSY') === true) return false
    throw error
  } finally {
    database.close()
  }
}

/** Result of a checkpoint: pages in the WAL, and how many of them are in the file. */
interface Checkpointed {
  readonly busy: number
  readonly log: number
  readonly checkpointed: number
}
