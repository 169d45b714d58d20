/**
 * Locks a data folder for this process and sets up its protection: backups, repair and disk space. It is
 * opened first and closed last.
 */

import { existsSync, statSync } from 'node:fs'
import type { Instruments } from '#base/process/instruments.ts'
import { version } from '#base/register/version.ts'
import { createDiskRoom } from '#broker/commit/disk-room.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { createBackupMaker } from '#store/backup/backup-starter.ts'
import { assertRestored } from '#store/backup/restore.ts'
import { lockFolder } from '#store/file/folder-lock.ts'
import { createReserve } from '#store/file/reserve.ts'
import { createBackups } from './backup-schedule.ts'
import { createRepair } from './repair.ts'

export interface DataFolderParts extends Instruments {
  readonly opened: AsyncDisposableStack
  readonly settings: Pick<Settings, 'data' | 'backup' | 'disk'>
}

const isOneDisk = (folder: string, other: string): boolean =>
  existsSync(other) && statSync(other).dev === statSync(folder).dev

/** @throws store.locked, store.failed */
export function openDataFolder({ opened, settings, clock, log, metrics }: DataFolderParts) {
  const { data, backup, disk } = settings
  opened.defer(lockFolder(data))
  assertRestored(data)
  const { restore: isAutomatic, ...options } = backup
  const repair = createRepair({ clock, log }, { dataFolder: data, backupFolder: backup.folder, isAutomatic })
  const backups = createBackups(
    { maker: createBackupMaker(), clock, log, metrics },
    { ...options, dataFolder: data, sparedBytes: disk.reserveBytes, version },
  )
  opened.defer(() => backups.close())
  const reserve = createReserve(data, disk.reserveBytes)
  const room = createDiskRoom(
    {
      reserve,
      deleteBackups: () => (isOneDisk(data, backup.folder) ? backups.deleteOld() : 0),
      clock,
      log,
      metrics,
    },
    { dataFolder: data, quotaBytes: disk.quotaBytes },
  )
  opened.defer(room.close)
  return { backups, room, repair }
}
