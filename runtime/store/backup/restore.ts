/**
 * Restores a whole data folder or one tenant's database from a backup. Each file is compared with the
 * manifest before it is renamed into place. A restored database records the time it lacks as a gap in its
 * history. Uplinks in it are marked, so that they compare their state with the other broker.
 */

import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { GatewayError } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import { openReader } from '#store/file/database.ts'
import { formatVersion } from '#store/file/database-schema.ts'
import { flush, place } from '#store/file/durable-files.ts'
import { lockFolder } from '#store/file/folder-lock.ts'
import type { BackupProgress } from './backup.ts'
import { readThrough } from './file-content.ts'
import { type BackedUpTenant, type Backup, type Manifest, readBackup } from './manifest.ts'

/** The time that a restored database lacks; stored in it under the key `restored`. Times are ms. */
export interface Restored {
  readonly at: number
  /** Name of the backup; null when the database continues after its log lost its end. */
  readonly backup: string | null
  /** Start of the missing time. */
  readonly from: number
  readonly to: number
}

/** While this entry exists in a data folder, the restored files are incomplete. */
const unfinished = '.restoring'

/**
 * Fills an empty data folder, or one that an interrupted restore left incomplete.
 * @throws store.not-empty when the folder holds anything else, store.corrupt when a file differs from the
 * manifest, store.newer, store.locked, store.full.
 */
export function restoreFolder(
  from: string,
  dataFolder: string,
  { now, onProgress }: { readonly now: number; readonly onProgress: (progress: BackupProgress) => void },
): Manifest {
  const manifest = readBackup(from)
  assertReadable(manifest, from)
  const unlock = lockFolder(dataFolder)
  let isOurs = false
  try {
    assertEmpty(dataFolder, from)
    isOurs = true
    const ofBytes = [...manifest.tenants, ...manifest.files].reduce((sum, { bytes }) => sum + bytes, 0)
    let doneBytes = 0
    const report = (bytes: number): void => {
      doneBytes += bytes
      onProgress({ doneBytes, ofBytes })
      failpoint('restore:between-files')
    }
    mkdirSync(join(dataFolder, unfinished), { recursive: true, mode: 0o700 })
    flush(dataFolder)
    for (const { file, mode, ...content } of manifest.files) {
      copyVerified(join(from, file), join(dataFolder, file), { ...content, mode })
      report(content.bytes)
    }
    for (const tenant of manifest.tenants) {
      copyTenant(from, tenant, {
        target: join(dataFolder, tenant.file),
        restored: { at: now, backup: nameOf(from), from: manifest.startedAt, to: now },
      })
      report(tenant.bytes)
    }
    failpoint('restore:before-end')
    rmSync(join(dataFolder, unfinished), { recursive: true })
    flush(dataFolder)
    return manifest
  } catch (error) {
    if (isOurs) undoRestore(manifest, dataFolder)
    throw refusal(error)
  } finally {
    unlock()
  }
}

/** Deletes the files of a failed restore, so that the folder is empty again. */
function undoRestore({ files, tenants }: Manifest, dataFolder: string): void {
  for (const { file } of [...files, ...tenants]) {
    for (const ending of ['', '.new', '.restored', '.restored.new', '.restored-journal'])
      rmSync(join(dataFolder, file + ending), { force: true })
  }
  rmSync(join(dataFolder, unfinished), { recursive: true, force: true })
}

/** @throws store.failed when a restore of this folder was interrupted. */
export function assertRestored(dataFolder: string): void {
  if (!existsSync(join(dataFolder, unfinished))) return
  const message = `a restore into ${dataFolder} was interrupted: run selvedge restore again`
  throw new GatewayError('store.failed', message, { dataFolder })
}

/**
 * Restores one tenant's database from a backup to an unused path.
 * @throws store.corrupt, store.newer
 */
export function restoreTenant(
  { path, name, manifest }: Backup,
  tenant: BackedUpTenant,
  { target, at, to }: { readonly target: string; readonly at: number; readonly to: number },
): Restored {
  const restored = { at, backup: name, from: manifest.startedAt, to: Math.max(manifest.startedAt, to) }
  try {
    copyTenant(path, tenant, { target, restored })
  } catch (error) {
    throw refusal(error)
  }
  return restored
}

/**
 * Records that a database lost the end of its log: everything after its last record until `to` is missing.
 */
export function markLoss(file: string, { at, to }: { readonly at: number; readonly to: number }): Restored {
  const from = lastRecordAt(file)
  const restored = { at, backup: null, from, to: Math.max(from, to) }
  try {
    mark(file, restored)
  } catch (error) {
    throw refusal(error)
  }
  return restored
}

function lastRecordAt(file: string): number {
  const database = openReader(file)
  try {
    const last = database.prepare<[], number>('SELECT at FROM log ORDER BY n DESC LIMIT 1').pluck().get()
    return last ?? 0
  } finally {
    database.close()
  }
}

const nameOf = (path: string): string =>
  resolve(path)
    .slice(dirname(resolve(path)).length)
    .replace(sep, '')

function assertReadable({ tenants, files, version }: Manifest, from: string): void {
  const newest = Math.max(0, ...tenants.map(({ format }) => format))
  if (newest > formatVersion) {
    throw new GatewayError(
      'store.newer',
      `${from} has data format ${newest}, of ${version}; this version supports up to ${formatVersion}`,
    )
  }
  for (const { file } of files) {
    if (!/^(?!\.\.?$)[^/\0]{1,255}$/.test(file))
      throw new GatewayError(
        'store.corrupt',
        `the manifest of ${from} lists ${file}, which is not a valid file name`,
      )
  }
  for (const { file } of tenants) {
    if (file !== 'selvedge.db' && !/^tenants\/[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.db$/.test(file))
      throw new GatewayError(
        'store.corrupt',
        `the manifest of ${from} lists ${file}, which is not a valid database path`,
      )
  }
}

/** The backup itself may be inside the data folder, and so may files that the system creates. */
function assertEmpty(dataFolder: string, from: string): void {
  const entries = readdirSync(dataFolder)
  if (entries.includes(unfinished)) return
  const source = resolve(from)
  const foreign = entries.find((entry) => {
    if (entry === 'lock' || entry === 'lost+found') return false
    const path = resolve(dataFolder, entry)
    return source !== path && !source.startsWith(path + sep)
  })
  if (foreign === undefined) return
  throw new GatewayError(
    'store.not-empty',
    `${dataFolder} holds ${foreign}; a backup can only be restored into an empty folder`,
    { dataFolder, entry: foreign },
  )
}

interface Expected {
  readonly bytes: number
  readonly sha256: string
  readonly mode: number
}

/** Copies a file and renames it into place when its size and hash match. */
function copyVerified(source: string, target: string, { bytes, sha256, mode }: Expected): void {
  if (!existsSync(source)) throw new GatewayError('store.corrupt', `${source} is missing`, { file: source })
  const fresh = `${target}.new`
  const found = readThrough(source, { file: fresh, mode })
  if (found.sha256 !== sha256 || found.bytes !== bytes) {
    rmSync(fresh, { force: true })
    throw new GatewayError('store.corrupt', `${source} differs from its manifest in size or hash`, {
      file: source,
    })
  }
  place(fresh, target)
}

function copyTenant(
  from: string,
  { file, bytes, sha256 }: BackedUpTenant,
  { target, restored }: { readonly target: string; readonly restored: Restored },
): void {
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
  const fresh = `${target}.restored`
  for (const ending of ['', '-wal', '-shm', '-journal']) rmSync(fresh + ending, { force: true })
  copyVerified(join(from, file), fresh, { bytes, sha256, mode: 0o644 })
  mark(fresh, restored)
  flush(fresh)
  place(fresh, target)
}

/** Records a gap without stream and entity, because the number of lost observations is unknown. */
function mark(file: string, restored: Restored): void {
  const database = new BetterSqlite3(file)
  try {
    database.pragma('synchronous = FULL')
    const has = database
      .prepare<[string], number>('SELECT count(*) FROM sqlite_schema WHERE name = ?')
      .pluck()
    database.transaction(() => {
      database
        .prepare(
          `INSERT INTO meta (key, value) VALUES ('restored', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
        )
        .run(JSON.stringify(restored))
      database
        .prepare(
          `INSERT INTO gap (g, s, rid, name, t0, t1, count, at, reason)
           VALUES ((SELECT coalesce(max(g), 0) FROM gap) + 1, 0, 0, 0, ?, ?, 0, ?, 'restore')`,
        )
        .run(restored.from, restored.to, restored.at)
      if (has.get('uplink') === 1)
        database.prepare(`UPDATE uplink SET state = json_set(state, '$.restored', ?)`).run(restored.at)
    })()
  } finally {
    database.close()
  }
}

function refusal(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const { code = '', message } = error as { code?: string; message: string }
  const isFull = code === 'SQLITE_FULL' || code === 'ENOSPC'
  return new GatewayError(
    isFull ? 'store.full' : 'store.failed',
    `restoring failed: ${message}`,
    { code },
    error,
  )
}
