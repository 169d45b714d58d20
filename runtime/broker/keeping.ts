/**
 * Takes a data folder for this process and sees to it that what is in it can be made up for: backups, and what is done
 * about damage. It is the first that is opened and the last that is closed.
 */
import type { GatewayError } from '#base/errors.ts'
import { version } from '#base/version.ts'
import type { Settings } from '#config/schema.ts'
import { createBackupMaker } from '#store/backup-maker.ts'
import { lockFolder } from '#store/folder-lock.ts'
import { assertRestored } from '#store/restore.ts'
import { type BackupsPorts, createBackups } from './backups.ts'
import { createMending } from './mending.ts'

export interface KeepingPorts extends Omit<BackupsPorts, 'maker'> {
  /** The process has to end, and its next start will mend. */
  readonly onFault: (error: GatewayError) => void
}

/** @throws store.locked, store.failed */
export function keepFolder(
  opened: AsyncDisposableStack,
  { data, backup, disk }: Pick<Settings, 'data' | 'backup' | 'disk'>,
  { onFault, ...ports }: KeepingPorts,
) {
  opened.defer(lockFolder(data))
  assertRestored(data)
  const { restore: isAutomatic, ...wishes } = backup
  const mending = createMending(ports, { dataFolder: data, backupFolder: backup.folder, isAutomatic })
  const backups = createBackups(
    { ...ports, maker: createBackupMaker() },
    { ...wishes, dataFolder: data, sparedBytes: disk.reserveBytes, version },
  )
  opened.defer(() => backups.close())
  return { backups, folder: { dataFolder: data, mending, onMendable: onFault } }
}
