/**
 * Locks a data folder for this process and sets up its protection: backups, repair and disk space. It is
 * opened first and closed last.
 */
import { existsSync, statSync } from 'node:fs'
import type { GatewayError } from '#base/register/errors.ts'
import { version } from '#base/register/version.ts'
import { createDiskRoom } from '#broker/commit/disk-room.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { createBackupMaker } from '#store/backup/backup-starter.ts'
import { assertRestored } from '#store/backup/restore.ts'
import { lockFolder } from '#store/file/folder-lock.ts'
import { createReserve } from '#store/file/reserve.ts'
import { type BackupsPorts, createBackups } from './backup-schedule.ts'
import { createRepair } from './repair.ts'

export interface DataFolderPorts extends Omit<BackupsPorts, 'maker'> {
  /** Called when the process must end so that the next start can restore a database. */
  readonly onFault: (error: GatewayError) => void
}

const isOneDisk = (folder: string, other: string): boolean =>
  existsSync(other) && statSync(other).dev === statSync(folder).dev

/** @throws store.locked, store.failed */
export function openDataFolder(
  opened: AsyncDisposableStack,
  { data, backup, disk }: Pick<Settings, 'data' | 'backup' | 'disk'>,
  { onFault, ...ports }: DataFolderPorts,
) {
  opened.defer(lockFolder(data))
  assertRestored(data)
  const { restore: isAutomatic, ...options } = backup
  const repair = createRepair(ports, { dataFolder: data, backupFolder: backup.folder, isAutomatic })
  const backups = createBackups(
    { ...ports, maker: createBackupMaker() },
    { ...options, dataFolder: data, sparedBytes: disk.reserveBytes, version },
  )
  opened.defer(() => backups.close())
  const reserve = createReserve(data, disk.reserveBytes)
  const room = createDiskRoom(
    { ...ports, reserve, deleteBackups: () => (isOneDisk(data, backup.folder) ? backups.deleteOld() : 0) },
    { dataFolder: data, quotaBytes: disk.quotaBytes },
  )
  opened.defer(room.close)
  return { backups, room, folder: { dataFolder: data, repair, room, onRepairable: onFault } }
}
