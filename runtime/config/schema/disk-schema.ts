/**
 * Settings of backups and of the room on the disk; part of the schema.
 */
import { limits } from '#base/limits/limits.ts'
import { maybe, section, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

export const backup = section('Backups', {
  schedule: setting(kind.schedule(), '17 3 * * *', {
    title: 'When backups are made',
    description:
      'In the time zone of the process. A gateway whose last backup is older than 26 hours makes one soon after its start. off: only those that are asked for.',
  }),
  folder: setting(kind.fileName(), 'backups', {
    title: 'Folder of the backups',
    description:
      'Better on another disk: one in the data folder helps against damaged files, not against a lost disk.',
  }),
  keep: setting(kind.wholeNumber(1, limits.backupsKeptMax.value, 'backups'), 2, {
    title: 'How many are kept',
    description: 'The oldest go, but never the newest that was verified.',
  }),
  verify: setting(kind.flag(), true, {
    title: 'Read every backup through',
    description: 'Its copy is checked from end to end, and what it holds is counted.',
  }),
  restore: setting(kind.flag(), true, {
    title: 'Restore a damaged tenant by itself',
    description:
      'At start, a damaged database is set aside and the newest verified backup takes its place. false: the tenant stays closed until somebody decides.',
  }),
})

export const disk = section('Room on the disk', {
  quotaBytes: maybe(kind.wholeNumber(16 * 1024 * 1024, 2 ** 50, 'bytes'), {
    title: 'Most bytes of the data folder',
    description: 'Backups not counted. Left out: what the disk has room for.',
  }),
  reserveBytes: setting(kind.wholeNumber(0, 2 ** 30, 'bytes'), 16 * 1024 * 1024, {
    title: 'Reserve',
    description:
      'A file that is given up when the disk is full, so that there is room to delete; at most a twentieth of the disk. 0: none.',
  }),
})
