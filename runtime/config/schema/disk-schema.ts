/**
 * Settings of backups and of disk space; part of the schema.
 */
import { limits } from '#base/limits/limits.ts'
import { maybe, section, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

export const backup = section('Backups', {
  schedule: setting(kind.schedule(), '17 3 * * *', {
    title: 'When backups are made',
    description:
      'In the time zone of the process. If the last backup is older than 26 hours, the gateway makes one soon after its start. off: backups are made on request only.',
  }),
  folder: setting(kind.fileName(), 'backups', {
    title: 'Folder of the backups',
    description:
      'Preferably on another disk: backups in the data folder protect against damaged files, not against a lost disk.',
  }),
  keep: setting(kind.wholeNumber(1, limits.backupsKeptMax.value, 'backups'), 2, {
    title: 'Number of backups kept',
    description: 'The oldest are deleted, but never the newest verified one.',
  }),
  verify: setting(kind.flag(), true, {
    title: 'Verify every backup',
    description: 'The copy is checked completely, and its content is counted.',
  }),
  restore: setting(kind.flag(), true, {
    title: 'Restore a damaged tenant automatically',
    description:
      'At start, a damaged database is set aside and replaced by the newest verified backup. false: the tenant stays closed until an operator restores it.',
  }),
})

export const disk = section('Disk space', {
  quotaBytes: maybe(kind.wholeNumber(16 * 1024 * 1024, 2 ** 50, 'bytes'), {
    title: 'Most bytes of the data folder',
    description: 'Without backups. Default: limited by the disk only.',
  }),
  reserveBytes: setting(kind.wholeNumber(0, 2 ** 30, 'bytes'), 16 * 1024 * 1024, {
    title: 'Reserve',
    description:
      'Size of a file that is deleted when the disk is full, so that deletions can still be written; at most a twentieth of the disk. 0: no such file.',
  }),
})
