/**
 * Settings of backups and of disk space; part of the schema.
 */
import { limits } from '#base/limits/limits.ts'
import { maybe, section, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

export const backup = section('Backups', {
  /**
   * When backups are made. In the time zone of the process. If the last backup is older than 26 hours, the
   * gateway makes one soon after its start. off: backups are made on request only.
   */
  schedule: setting(kind.schedule(), '17 3 * * *'),
  /**
   * Folder of the backups. Preferably on another disk: backups in the data folder protect against damaged
   * files, not against a lost disk.
   */
  folder: setting(kind.fileName(), 'backups'),
  /** Number of backups kept. The oldest are deleted, but never the newest verified one. */
  keep: setting(kind.wholeNumber(1, limits.backupsKeptMax.value, 'backups'), 2),
  /** Verify every backup. The copy is checked completely, and its content is counted. */
  verify: setting(kind.flag(), true),
  /**
   * Restore a damaged tenant automatically. At start, a damaged database is set aside and replaced by the
   * newest verified backup. false: the tenant stays closed until an operator restores it.
   */
  restore: setting(kind.flag(), true),
})

export const disk = section('Disk space', {
  /** Most bytes of the data folder. Without backups. Default: limited by the disk only. */
  quotaBytes: maybe(kind.wholeNumber(16 * 1024 * 1024, 2 ** 50, 'bytes')),
  /**
   * Reserve. Size of a file that is deleted when the disk is full, so that deletions can still be written; at
   * most a twentieth of the disk. 0: no such file.
   */
  reserveBytes: setting(kind.wholeNumber(0, 2 ** 30, 'bytes'), 16 * 1024 * 1024),
})
