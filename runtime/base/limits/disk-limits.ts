/**
 * Ceilings of backups and of the measures against a full disk; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const diskLimits = {
  backupPagesPerStep: limit(256, 'pages', 'One megabyte between two checks', 'the next step'),
  backupRestMsMax: limit(500, 'ms', 'Leaves half of a slow disk to the gateway', 'the next step begins'),
  backupFileBytesMax: limit(1024 * 1024, 'bytes', 'Credentials and certificates are small', 'omitted'),
  backupsKeptMax: limit(1000, 'backups', 'Each is a folder that is inspected', 'rejected as a setting'),
  backupCheckMs: limit(15_000, 'ms', 'Schedules have minute resolution', 'the next check'),
  backupLateMs: limit(
    26 * 3_600_000,
    'ms',
    'A site that is switched off at night misses its schedule',
    'a backup is made soon after the start',
  ),
  backupSettleMs: limit(300_000, 'ms', 'After a start, other work has priority', 'the missed backup is made'),
  checkedBytesMax: limit(
    64 * 1024 * 1024,
    'bytes',
    'A database is verified when it is opened; about 2 s on a slow card',
    'only its beginning is verified; backups verify everything',
  ),
  restoredReportMs: limit(
    7 * 86_400_000,
    'ms',
    'By then an operator has noticed',
    'health no longer reports the restore',
  ),
  checkedMs: limit(2000, 'ms', 'Verifying the small tables of larger databases', 'the rest is not verified'),
  damagedKeptMax: limit(
    2,
    'files',
    'Damaged files of each tenant, set aside unchanged',
    'the oldest is deleted',
  ),
  diskCheckMs: limit(1000, 'ms', 'How soon a filling disk is noticed', 'the next check'),
  diskCheckMsMin: limit(10, 'ms', 'Shortest interval, when the disk is almost full', 'the next check'),
  diskFillBytesPerMs: limit(
    100_000,
    'bytes',
    'Assumed fill rate; the disk is checked before the remaining room can be used up',
    'a commit may find it full',
  ),
  diskEvictMs: limit(100, 'ms', 'Searching for backups and snapshots to delete takes time', 'the next check'),
  walCheckMs: limit(
    100,
    'ms',
    'Interval of checking the size of the WAL while there is room',
    'the next commit',
  ),
  walRoomShare: limit(
    16,
    'parts',
    'The WAL uses at most one part in this many of the free disk',
    'PASSIVE checkpoint',
  ),
  shortGroupBytes: limit(
    256 * 1024,
    'bytes',
    'When room is short, deletions must keep up with writes',
    'next group',
  ),
  diskLowBytes: limit(
    1024 * 1024,
    'bytes',
    'This or the reserve, whichever is larger: below it, backups, snapshots and history are deleted',
    'with no room left, writes are rejected',
  ),
  diskLogMs: limit(10_000, 'ms', 'A disk near its limit changes state often', 'not logged'),
  shrinkEveryMs: limit(
    50,
    'ms',
    'When room is short, the log is folded and trimmed this often, and history is evicted',
    'the next group',
  ),
  shortTailMs: limit(2000, 'ms', 'When room is short, tails and log are kept no longer', 'folded, trimmed'),
} as const satisfies Record<string, Limit>
