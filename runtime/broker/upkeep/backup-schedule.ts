/**
 * Makes backups of this gateway, by schedule or on request, one at a time. The age of the last good backup is
 * reported everywhere, because a missing backup is otherwise noticed only when it is needed.
 */

import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import { openSchedule, type Schedule } from '#base/time/schedule.ts'
import { gatewayId } from '#config/load/gateway-id.ts'
import type { BackupOptions, BackupProgress } from '#store/backup/backup.ts'
import type { BackupMaker } from '#store/backup/backup-starter.ts'
import { type Backup, backupsOf, listBackups, newestVerified, pruneBackups } from '#store/backup/manifest.ts'

export interface BackupsPorts extends Instruments {
  readonly maker: BackupMaker
}

export interface BackupsSettings extends Omit<BackupOptions, 'isGentle'> {
  /** A cron expression, or `off`. */
  readonly schedule: string
}

export interface BackupsStatus {
  readonly folder: string
  readonly schedule: string
  readonly backups: readonly Backup[]
  /** Progress of the backup being made. */
  readonly progress: BackupProgress | undefined
  readonly failure: { readonly at: number; readonly code: string; readonly message: string } | undefined
}

export interface Backups {
  /** @throws store.busy while one is being made; store.full, store.corrupt, store.failed */
  make(): Promise<Backup>
  status(): BackupsStatus
  /** Warnings for the operator. */
  complaints(): readonly string[]
  /** Deletes all but the newest verified backup. Returns how many were deleted. */
  deleteOld(): number
  close(): Promise<void>
}

export function createBackups(
  { maker, clock, log, metrics }: BackupsPorts,
  { schedule: expression, ...options }: BackupsSettings,
): Backups {
  const { folder } = options
  const made = metrics.counter('selvedge_backups_total')
  const failed = metrics.counter('selvedge_backups_failed_total')
  const own = backupsOf(folder, gatewayId(options.dataFolder))
  // Without verification, an unverified backup is as good as any.
  let newest = options.verify ? newestVerified(own) : own[0]
  let progress: BackupProgress | undefined
  let failure: BackupsStatus['failure']
  let schedule: Schedule | undefined
  let checkedAt = minuteOf(clock.now())
  const startedAt = clock.monotonic()
  let isOverdue = expression !== 'off' && ageMs() > limits.backupLateMs.value

  /** Age of the newest backup, infinite without one, and never negative if the clock was set back. */
  function ageMs(): number {
    return newest === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, clock.now() - newest.manifest.startedAt)
  }
  metrics.gauge('selvedge_backup_age_seconds', () => Math.min(ageMs(), 100 * 365 * 86_400_000) / 1000)

  async function make(): Promise<Backup> {
    if (progress !== undefined)
      throw new GatewayError('store.busy', 'a backup is being made', { retryAfterSeconds: 5 })
    progress = { doneBytes: 0, ofBytes: 0 }
    try {
      const backup = await maker.make({ ...options, isGentle: true }, (reported) => {
        progress = reported
      })
      newest = backup
      failure = undefined
      made.value++
      const { startedAt: from, finishedAt, verified, tenants } = backup.manifest
      const bytes = tenants.reduce((sum, tenant) => sum + tenant.bytes, 0)
      log.info('backup.made', { path: backup.path, bytes, verified, ms: finishedAt - from })
      return backup
    } catch (error) {
      const { code, message } = toGatewayError(error)
      if (code !== 'store.closed') {
        failure = { at: clock.now(), code, message }
        failed.value++
        log.error('backup.failed', { folder, code, error: message })
      }
      throw error
    } finally {
      progress = undefined
    }
  }

  async function check(): Promise<void> {
    schedule ??= await openSchedule(expression)
    const minute = minuteOf(clock.now())
    const isNew = minute !== checkedAt
    checkedAt = minute
    const isLate = isOverdue && clock.monotonic() - startedAt > limits.backupSettleMs.value
    if (!isLate && !(isNew && schedule.isTime(clock.now()))) return
    isOverdue = false
    // `make` has logged the error; the next scheduled time follows.
    await make().catch(() => undefined)
  }

  const timer =
    expression === 'off' ? undefined : setInterval(() => void check(), limits.backupCheckMs.value).unref()

  return Object.freeze({
    make,
    status: () => ({ folder, schedule: expression, backups: listBackups(folder), progress, failure }),
    complaints: () => (failure === undefined ? [] : [`the last backup failed: ${failure.message}`]),
    deleteOld: () =>
      progress === undefined ? pruneBackups(folder, gatewayId(options.dataFolder), { keep: 1 }) : 0,
    async close() {
      clearInterval(timer)
      await maker.end()
    },
  } satisfies Backups)
}

const minuteOf = (ms: number): number => Math.floor(ms / 60_000)
