/**
 * The write-ahead log of one database: when what is in it is copied back into the database's file. What is committed must
 * always find room there, because a log that cannot be copied back cannot end, and a disk full of it stays full. So a
 * commit that leaves less room than the file has still to grow by is refused before it is made.
 */
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { type Database, openWriter } from './database.ts'

/** A page in the log, with its header. */
export const walFrameBytes = 4120

export interface CopyBack {
  /** A transaction is about to begin. */
  begin(): void
  /** Before a commit: whether what would be committed finds room in the file. */
  hasRoom(): boolean
  /** After a commit: copies back when the log is larger than it may be; with 0 the log is cut off, too. */
  after(walBytesMax: number): void
  /** Copies all of it back and cuts it off, as far as readers allow. True when that made room on the disk. */
  cutOff(): boolean
}

export function createCopyBack(database: Database, file: string, onCopied: () => void): CopyBack {
  const pageCount = database.prepare('PRAGMA page_count').pluck()
  const pageBytes = database.pragma('page_size', { simple: true }) as number
  const wait = database.pragma('busy_timeout', { simple: true }) as number
  const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  const walBytes = (): number => sizeOf(`${file}-wal`)
  let bytesBefore = 0
  let lookAt = 0

  /** How large the file is when all is copied back. */
  const wholeBytes = (): number => (pageCount.get() as number) * pageBytes

  /**
   * Returns the pages in the log. A checkpoint that fails loses nothing and is tried again with a later commit; on a full
   * disk the commits fail too, and those are told.
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
    // Who reads for long, as a backup does, is not waited for; then it is only copied back.
    database.pragma('busy_timeout = 0')
    checkpoint('TRUNCATE')
    database.pragma(`busy_timeout = ${wait}`)
    return walBytes() < before
  }

  return Object.freeze({
    begin() {
      bytesBefore = wholeBytes()
    },
    hasRoom() {
      const whole = wholeBytes()
      const grown = whole - bytesBefore
      if (grown <= 0) return true
      const owed = Math.max(0, bytesBefore - sizeOf(file))
      const { bavail, bsize } = statfsSync(dirname(file))
      // New pages take room twice: in the log, and where they are copied to.
      return bavail * bsize >= owed + 2 * grown
    },
    after(walBytesMax) {
      if (walBytesMax === 0) {
        cutOff()
        return
      }
      const now = performance.now()
      if (now < lookAt) return
      const isRoomy = walBytesMax >= limits.walPagesMax.value * walFrameBytes
      lookAt = isRoomy ? now + limits.walCheckMs.value : 0
      if (checkpoint('NOOP') * walFrameBytes < walBytesMax) return
      checkpoint('PASSIVE')
      onCopied()
    },
    cutOff,
  } satisfies CopyBack)
}

/**
 * Copies the log of a file that somebody else writes back into it, cuts it off, and begins the next one; false where that one
 * writes or reads meanwhile, so that the log goes on. All of it is done by SQLite, in its order: the log is flushed before it is
 * copied, the file before the log is cut off, and the head of the next log before anything stands behind it. So a power cut
 * finds whole logs only, and whoever writes there has nothing to flush. Copying holds nobody up, only the flush of a head does.
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
    // The least that can be written.
    database.pragma(`user_version = ${database.pragma('user_version', { simple: true })}`)
    return true
  } catch (error) {
    if ((error as { readonly code?: string }).code?.startsWith('SQLITE_BUSY') === true) return false
    throw error
  } finally {
    database.close()
  }
}

/** What a checkpoint tells: pages in the log, and those of them that are in the file. */
interface Checkpointed {
  readonly busy: number
  readonly log: number
  readonly checkpointed: number
}
