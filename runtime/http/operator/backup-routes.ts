/**
 * Lists backups and makes one. Backups are written only to the configured folder; their contents are never
 * served over HTTP.
 */
import type { Backups, BackupsStatus } from '#broker/upkeep/backup-schedule.ts'
import type { Answers } from '#http/request/response.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { Backup } from '#store/backup/manifest.ts'

export const backupsPath = '/selvedge/v1/backups'

export function createBackupRoutes({ backups, answers }: { backups: Backups; answers: Answers }) {
  const noStore = { 'Cache-Control': 'no-store' }
  return Object.freeze({
    list: () => answers.json(statusOf(backups.status()), 200, noStore),
    make: async () => answers.json(viewOf(await backups.make()), 201, noStore),
  })
}

function statusOf({ folder, schedule, backups, progress, failure }: BackupsStatus) {
  return {
    folder,
    schedule,
    backups: backups.map(viewOf),
    ...(progress !== undefined && { progress: { ...progress } }),
    ...(failure !== undefined && { failure: { ...failure, at: msToDateTime(failure.at) } }),
  }
}

function viewOf({ name, path, manifest }: Backup) {
  const { gatewayId, startedAt, finishedAt, verified, version, dataFormat, tenants } = manifest
  return {
    name,
    path,
    gatewayId,
    startedAt: msToDateTime(startedAt),
    finishedAt: msToDateTime(finishedAt),
    verified,
    version,
    dataFormat,
    bytes: tenants.reduce((sum, { bytes }) => sum + bytes, 0),
    tenants: tenants.map(({ name: tenant, counts }) => ({ name: tenant, counts: { ...counts } })),
  }
}
