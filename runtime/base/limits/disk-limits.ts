/**
 * Ceilings of backups and of the measures against a full disk; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const diskLimits = {
  /** One megabyte between two checks. Beyond it: the next step. */
  backupPagesPerStep: limit(256, 'pages'),
  /** Leaves half of a slow disk to the gateway. Beyond it: the next step begins. */
  backupRestMsMax: limit(500, 'ms'),
  /** Credentials and certificates are small. Beyond it: omitted. */
  backupFileBytesMax: limit(1024 * 1024, 'bytes'),
  /** Each is a folder that is inspected. Beyond it: rejected as a setting. */
  backupsKeptMax: limit(1000, 'backups'),
  /** Schedules have minute resolution. Beyond it: the next check. */
  backupCheckMs: limit(15_000, 'ms'),
  /**
   * A site that is switched off at night misses its schedule. Beyond it: a backup is made soon after the
   * start.
   */
  backupLateMs: limit(26 * 3_600_000, 'ms'),
  /** After a start, other work has priority. Beyond it: the missed backup is made. */
  backupSettleMs: limit(300_000, 'ms'),
  /**
   * A database is verified when it is opened; about 2 s on a slow card. Beyond it: only its beginning is
   * verified; backups verify everything.
   */
  checkedBytesMax: limit(64 * 1024 * 1024, 'bytes'),
  /** By then an operator has noticed. Beyond it: health no longer reports the restore. */
  restoredReportMs: limit(7 * 86_400_000, 'ms'),
  /** Verifying the small tables of larger databases. Beyond it: the rest is not verified. */
  checkedMs: limit(2000, 'ms'),
  /** Damaged files of each tenant, set aside unchanged. Beyond it: the oldest is deleted. */
  damagedKeptMax: limit(2, 'files'),
  /** Longest interval between two checks, with much room on the disk. Beyond it: the next check. */
  diskCheckMs: limit(5000, 'ms'),
  /** Shortest interval, when the disk is almost full. Beyond it: the next check. */
  diskCheckMsMin: limit(10, 'ms'),
  /**
   * Assumed fill rate; the disk is checked before the remaining room can be used up. Beyond it: a commit may
   * find it full.
   */
  diskFillBytesPerMs: limit(100_000, 'bytes'),
  /** Searching for backups and snapshots to delete takes time. Beyond it: the next check. */
  diskEvictMs: limit(100, 'ms'),
  /** Interval of checking the size of the WAL while there is room. Beyond it: the next commit. */
  walCheckMs: limit(100, 'ms'),
  /** The WAL uses at most one part in this many of the free disk. Beyond it: PASSIVE checkpoint. */
  walRoomShare: limit(16, 'parts'),
  /** When room is short, deletions must keep up with writes. Beyond it: next group. */
  shortGroupBytes: limit(256 * 1024, 'bytes'),
  /**
   * This or the reserve, whichever is larger: below it, backups, snapshots and history are deleted. Beyond
   * it: with no room left, writes are rejected.
   */
  diskLowBytes: limit(4 * 1024 * 1024, 'bytes'),
  /**
   * Fits the largest entity, which is written to the log and as a document, and the upkeep that follows.
   * Beyond it: writes are rejected until history is deleted.
   */
  diskKeptBytes: limit(3 * 1024 * 1024, 'bytes'),
  /** A disk near its limit changes state often. Beyond it: not logged. */
  diskLogMs: limit(10_000, 'ms'),
  /**
   * When room is short, the log is folded and trimmed this often, and history is evicted. Beyond it: the next
   * group.
   */
  shrinkEveryMs: limit(50, 'ms'),
  /** When room is short, tails and log are kept no longer. Beyond it: folded, trimmed. */
  shortTailMs: limit(2000, 'ms'),
} as const satisfies Record<string, Limit>
