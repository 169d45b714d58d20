/**
 * The ceilings of backups and of what is done when a disk fills; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const diskLimits = {
  backupPagesPerStep: limit(256, 'pages', 'One megabyte between two looks', 'the next step'),
  backupRestMsMax: limit(500, 'ms', 'Leaves half of a slow disk to the gateway', 'the next step begins'),
  backupFileBytesMax: limit(1024 * 1024, 'bytes', 'Credentials and certificates are small', 'left out'),
  backupsKeptMax: limit(1000, 'backups', 'Each is a folder that is looked into', 'refused as a setting'),
  backupCheckMs: limit(15_000, 'ms', 'A schedule goes by the minute', 'the next look'),
  backupLateMs: limit(
    26 * 3_600_000,
    'ms',
    'A site that is switched off at night has missed its hour',
    'a backup is made soon after the start',
  ),
  backupSettleMs: limit(300_000, 'ms', 'After a start there is other work', 'the missed backup is made'),
  checkedBytesMax: limit(
    64 * 1024 * 1024,
    'bytes',
    'A database is read through when it is opened; about 2 s on a slow card',
    'only its beginning is looked at; backups read all',
  ),
  restoredReportMs: limit(
    7 * 86_400_000,
    'ms',
    'Somebody will have looked',
    'health does not tell it any more',
  ),
  checkedMs: limit(2000, 'ms', 'The same, of larger ones: their small tables', 'the rest is not looked at'),
  damagedKeptMax: limit(2, 'files', 'Of each tenant, set aside as they were', 'the oldest goes'),
  diskCheckMs: limit(1000, 'ms', 'How soon a filling disk is noticed', 'the next look'),
  diskCheckMsMin: limit(10, 'ms', 'The same, where next to nothing is left', 'the next look'),
  diskFillBytesPerMs: limit(
    100_000,
    'bytes',
    'How fast a disk fills at most; it is looked at before what is left could be gone',
    'a commit may find it full',
  ),
  diskEvictMs: limit(100, 'ms', 'Looking for backups and snapshots to give up takes time', 'the next look'),
  walCheckMs: limit(100, 'ms', 'Asking for the size of the WAL, where there is room', 'the next commit'),
  walRoomShare: limit(
    16,
    'parts',
    'The WAL has at most one part in so many of the free disk',
    'PASSIVE checkpoint',
  ),
  shortGroupBytes: limit(
    256 * 1024,
    'bytes',
    'Where room is short, what takes it goes in step with what makes it',
    'next group',
  ),
  diskLowBytes: limit(
    1024 * 1024,
    'bytes',
    'Or the reserve, where that is more: below, backups, snapshots and history are given up',
    'at nothing, writes are refused',
  ),
  diskLogMs: limit(10_000, 'ms', 'A disk at its bound goes to and fro', 'not told'),
  shrinkEveryMs: limit(
    50,
    'ms',
    'Where room is short, the log is folded and trimmed so often, and history looked for',
    'the next group',
  ),
  shortTailMs: limit(2000, 'ms', 'Where room is short, tails and log are held no longer', 'folded, trimmed'),
} as const satisfies Record<string, Limit>
