/**
 * A backup is a folder with a manifest that states its content and time. A folder without a manifest, or with
 * a name that begins with a dot, is not a backup. Names sort by time. This file reads backups, and decides
 * which old ones to delete (`pruneBackups`, called by `backup.ts` after a new one); it makes none.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { GatewayError } from '#base/register/errors.ts'
import type { TenantFacts } from '#store/file/inspection.ts'
import type { Content } from './file-content.ts'

export interface BackedUpTenant extends TenantFacts, Content {
  /** Path within the backup, and within a data folder. */
  readonly file: string
  /** The last number of the tenant's log. */
  readonly number: number
}

export interface BackedUpFile extends Content {
  readonly file: string
  readonly mode: number
}

export interface Manifest {
  readonly product: 'selvedge'
  /** Version of the manifest format. */
  readonly manifest: 1
  readonly version: string
  readonly dataFormat: number
  readonly gatewayId: string
  /** Every write acknowledged before this time is in the backup. ms since 1970. */
  readonly startedAt: number
  readonly finishedAt: number
  /** Whether the copies were read again and verified. */
  readonly verified: boolean
  readonly tenants: readonly BackedUpTenant[]
  /** Every other file, such as credentials. */
  readonly files: readonly BackedUpFile[]
}

export interface Backup {
  readonly name: string
  readonly path: string
  readonly manifest: Manifest
}

export const manifestName = 'manifest.json'
const namePattern = /^backup-\d{8}T\d{6}Z(-\d+)?$/

/** Name of a backup, such as `backup-20260102T030405Z`. */
export function backupName(ms: number): string {
  return `backup-${new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
}

/** The backups in a folder, newest first. Entries that are not backups are skipped. */
export function listBackups(folder: string): readonly Backup[] {
  const found: Backup[] = []
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    if (!namePattern.test(name)) continue
    const path = join(folder, name)
    const manifest = manifestIn(path)
    if (manifest !== undefined) found.push({ name, path, manifest })
  }
  return found.toSorted((a, b) => b.manifest.startedAt - a.manifest.startedAt)
}

/** The backups of one gateway; several gateways may share a folder. */
export const backupsOf = (folder: string, gatewayId: string): readonly Backup[] =>
  listBackups(folder).filter(({ manifest }) => manifest.gatewayId === gatewayId)

/** The newest verified backup. */
export const newestVerified = (backups: readonly Backup[]): Backup | undefined =>
  backups.find(({ manifest }) => manifest.verified)

/** @throws store.corrupt when the folder is not a backup, store.newer when a newer version made it. */
export function readBackup(path: string): Manifest {
  let text: string
  try {
    text = readFileSync(join(path, manifestName), 'utf8')
  } catch (error) {
    throw new GatewayError(
      'store.corrupt',
      `${path} is not a backup: it has no ${manifestName}`,
      { path },
      error,
    )
  }
  let manifest: Partial<Manifest>
  try {
    manifest = JSON.parse(text) as Partial<Manifest>
  } catch (error) {
    throw new GatewayError('store.corrupt', `${manifestName} of ${path} is not valid JSON`, { path }, error)
  }
  if (manifest.product !== 'selvedge' || !Array.isArray(manifest.tenants) || !Array.isArray(manifest.files))
    throw new GatewayError('store.corrupt', `${path} is not a backup of this product`, { path })
  if (manifest.manifest !== 1)
    throw new GatewayError('store.newer', `${path} was made by a newer version, ${manifest.version}`, {
      path,
    })
  return manifest as Manifest
}

function manifestIn(path: string): Manifest | undefined {
  try {
    return readBackup(path)
  } catch {
    return undefined
  }
}

/**
 * Deletes all but the newest backups of one gateway, never its newest verified one. Returns the number
 * deleted. `made` is the backup just made: it counts as the newest, even if the clock was set back.
 */
export function pruneBackups(
  folder: string,
  gatewayId: string,
  { keep, made }: { readonly keep: number; readonly made?: string | undefined },
): number {
  const own = backupsOf(folder, gatewayId)
  const best = newestVerified(own)
  const others = own.filter(({ name }) => name !== made)
  const old = others.slice(keep - (own.length - others.length)).filter((backup) => backup !== best)
  for (const { path } of old) {
    // Delete the manifest first: an interrupted deletion then leaves no backup.
    rmSync(join(path, manifestName), { force: true })
    rmSync(path, { recursive: true, force: true })
  }
  return old.length
}
