/**
 * Repairs a damaged database: it is renamed with a timestamp, replaced by the newest verified backup of this
 * gateway, and the lost span is reported. Without a backup, or if automatic restore is off, the tenant stays
 * closed. An empty database never replaces a damaged one. A missing tenant of the newest backup is damage,
 * unless `.removed` marks it. Each step can be interrupted and is continued by the next start.
 */

import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import { gatewayId } from '#config/load/gateway-id.ts'
import { markedVersion } from '#config/load/version-mark.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { type BackedUpTenant, type Backup, backupsOf } from '#store/backup/manifest.ts'
import { markLoss, type Restored, restoreTenant } from '#store/backup/restore.ts'
import { damageOf, lostFrames } from '#store/file/damage.ts'
import { flush, place, writeDurably } from '#store/file/durable-files.ts'

export interface RepairSettings {
  readonly dataFolder: string
  readonly backupFolder: string
  /** Whether a backup is restored automatically. */
  readonly isAutomatic: boolean
}

export interface Repair {
  /** Tenants in the newest backup of this gateway, which must exist unless they were removed on purpose. */
  expected(): readonly string[]
  /**
   * Makes a tenant's file ready to be opened, if possible. @throws store.corrupt if it is not, store.failed
   */
  mend(tenant: string, file: string): void
  /**
   * Records that a file was found damaged while it was open. True if the next start will restore it; the
   * process should then end.
   */
  suspect(tenant: string, file: string): boolean
}

const sideFiles = ['-wal', '-shm', '-journal'] as const

export function createRepair({ clock, log }: ClockAndLog, settings: RepairSettings): Repair {
  const { dataFolder, backupFolder, isAutomatic } = settings

  /** Verified backups of this gateway that contain the tenant, newest first. */
  function candidates(tenant: string): readonly { backup: Backup; copy: BackedUpTenant }[] {
    return backupsOf(backupFolder, gatewayId(dataFolder)).flatMap((backup) => {
      const { manifest } = backup
      const copy = manifest.tenants.find(({ name }) => name === tenant)
      return manifest.verified && copy !== undefined ? [{ backup, copy }] : []
    })
  }

  function expected(): readonly string[] {
    const [newest] = backupsOf(backupFolder, gatewayId(dataFolder))
    return (newest?.manifest.tenants ?? []).flatMap(({ name, file }) =>
      name === '' || existsSync(`${join(dataFolder, file)}.removed`) ? [] : [name],
    )
  }

  /** Whether a file is missing that must exist. */
  function isMissed(tenant: string, file: string): boolean {
    if (tenant === '') return markedVersion(dataFolder) !== undefined
    return !existsSync(file) && expected().includes(tenant)
  }

  function mend(tenant: string, file: string): void {
    const mended = `${file}.mended`
    const suspected = `${file}.suspect`
    if (!existsSync(file) && existsSync(mended)) takePlace(file, mended)
    const isSuspect = existsSync(suspected)
    const isExpected = isMissed(tenant, file)
    // A tenant that was re-created must exist from now on.
    if (existsSync(file)) rmSync(`${file}.removed`, { force: true })
    const cut = existsSync(file) ? lostFrames(file) : 0
    const lastWriteAt = lastWriteOf(file)
    const damage = damageOf(file, { isExpected, isSuspect })
    if (damage !== undefined) restore(tenant, file, damage)
    else if (cut > 0) {
      const restored = markLoss(file, { at: clock.now(), to: lastWriteAt })
      log.error('store.log-cut', { tenant, file, pages: cut, ...spanOf(restored) })
    }
    rmSync(suspected, { force: true })
  }

  function restore(tenant: string, file: string, damage: string): void {
    const words = `${file} ${damage}`
    if (!isAutomatic)
      throw new GatewayError('store.corrupt', `${words}; backup.restore is off`, { tenant, file, damage })
    const to = lastWriteOf(file)
    for (const { backup, copy } of candidates(tenant)) {
      const restored = fetchFrom(backup, copy, { target: `${file}.mended`, at: clock.now(), to })
      if (restored === undefined) continue
      const aside = setAside(file, clock.now())
      failpoint('mend:between-names')
      takePlace(file, `${file}.mended`)
      log.error('store.restored', { tenant, damage, aside, backup: backup.path, ...spanOf(restored) })
      return
    }
    throw new GatewayError('store.corrupt', `${words}, and ${backupFolder} has no verified backup of it`, {
      tenant,
      file,
      damage,
    })
  }

  /** Undefined if this backup cannot be used; another may be. */
  function fetchFrom(
    backup: Backup,
    copy: BackedUpTenant,
    how: { readonly target: string; readonly at: number; readonly to: number },
  ): Restored | undefined {
    try {
      return restoreTenant(backup, copy, how)
    } catch (error) {
      if (!isGatewayError(error, 'store.corrupt')) throw error
      log.error('backup.unusable', { path: backup.path, error: error.message })
      return undefined
    }
  }

  return Object.freeze({
    expected,
    mend,
    suspect(tenant, file) {
      if (!isAutomatic || candidates(tenant).length === 0) return false
      try {
        writeDurably(`${file}.suspect`, '', 0o600)
        return true
      } catch {
        return false
      }
    },
  } satisfies Repair)
}

const spanOf = ({ from, to }: Restored) => ({ lostFrom: msToDateTime(from), lostTo: msToDateTime(to) })

/** When the database or its log was last written, ms; 0 if neither exists. */
function lastWriteOf(file: string): number {
  const times = [file, `${file}-wal`].map((one) => statSync(one, { throwIfNoEntry: false })?.mtimeMs ?? 0)
  return Math.floor(Math.max(...times))
}

/**
 * Side files are renamed last: without its database a log is useless. Returns the new path of the database.
 */
function setAside(file: string, now: number): string {
  const aside = `${file}.damaged-${new Date(now).toISOString().replaceAll(/[-:.]/g, '')}`
  if (existsSync(file)) renameSync(file, aside)
  for (const side of sideFiles) if (existsSync(file + side)) renameSync(file + side, aside + side)
  flush(dirname(file))
  forgetOldest(file)
  return aside
}

/** Deletes all but the newest few damaged copies. */
function forgetOldest(file: string): void {
  const folder = dirname(file)
  const all = readdirSync(folder).filter((name) => name.startsWith(`${basename(file)}.damaged-`))
  const kept = all.filter((name) => !sideFiles.some((side) => name.endsWith(side))).toSorted()
  for (const name of kept.slice(0, -limits.damagedKeptMax.value)) {
    for (const ending of ['', ...sideFiles]) rmSync(join(folder, name + ending), { force: true })
  }
}

/** Also completes a replacement that was interrupted between the two renames. */
function takePlace(file: string, mended: string): void {
  for (const side of sideFiles) rmSync(file + side, { force: true })
  place(mended, file)
}
