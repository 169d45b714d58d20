/**
 * From a backup back to data: a whole data folder, or one tenant's database. What a backup says of a file is compared with
 * the file before anything gets its name. A restored database states that it is one and which time it lacks, as a gap of
 * its history; uplinks in it are marked, so that they compare what the other side has.
 */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { GatewayError } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import { openReader } from '#store/file/database.ts'
import { formatVersion } from '#store/file/database-schema.ts'
import { flush, place, readThrough } from '#store/file/durable-files.ts'
import { lockFolder } from '#store/file/folder-lock.ts'
import { type BackedUpTenant, type Backup, type Manifest, readBackup } from './manifest.ts'

/** What a database that was restored lacks; kept in it under `restored`. Times are ms. */
export interface Restored {
  readonly at: number
  /** Name of the backup; null where the database itself goes on without what its log lost. */
  readonly backup: string | null
  /** Nothing of this time is there. */
  readonly from: number
  readonly to: number
}

export interface RestoreProgress {
  readonly doneBytes: number
  readonly ofBytes: number
}

/** While it lies in a data folder, what is beside it is half a backup. */
const unfinished = '.restoring'

/**
 * Fills an empty data folder, or one that an earlier restore left half full.
 * @throws store.not-empty when the folder holds anything, store.corrupt when the backup is not what it says of itself,
 * store.newer, store.locked, store.full.
 */
export function restoreFolder(
  from: string,
  dataFolder: string,
  { now, onProgress }: { readonly now: number; readonly onProgress: (progress: RestoreProgress) => void },
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
    const told = (bytes: number): void => {
      doneBytes += bytes
      onProgress({ doneBytes, ofBytes })
      failpoint('restore:between-files')
    }
    mkdirSync(join(dataFolder, unfinished), { recursive: true, mode: 0o700 })
    flush(dataFolder)
    for (const { file, mode, ...content } of manifest.files) {
      bring(join(from, file), join(dataFolder, file), { ...content, mode })
      told(content.bytes)
    }
    for (const tenant of manifest.tenants) {
      bringTenant(from, tenant, {
        target: join(dataFolder, tenant.file),
        restored: { at: now, backup: nameOf(from), from: manifest.startedAt, to: now },
      })
      told(tenant.bytes)
    }
    failpoint('restore:before-end')
    rmSync(join(dataFolder, unfinished), { recursive: true })
    flush(dataFolder)
    return manifest
  } catch (error) {
    if (isOurs) takeBack(manifest, dataFolder)
    throw refusal(error)
  } finally {
    unlock()
  }
}

/** What could not be restored leaves the folder as empty as it was. */
function takeBack({ files, tenants }: Manifest, dataFolder: string): void {
  for (const { file } of [...files, ...tenants]) {
    for (const ending of ['', '.new', '.restored', '.restored.new', '.restored-journal'])
      rmSync(join(dataFolder, file + ending), { force: true })
  }
  rmSync(join(dataFolder, unfinished), { recursive: true, force: true })
}

/** @throws store.failed when a restore of this folder was cut short. */
export function assertRestored(dataFolder: string): void {
  if (!existsSync(join(dataFolder, unfinished))) return
  const message = `${dataFolder} holds half a backup: run selvedge restore again`
  throw new GatewayError('store.failed', message, { dataFolder })
}

/** Brings one tenant's database out of a backup to a path where nothing is. @throws store.corrupt, store.newer */
export function restoreTenant(
  { path, name, manifest }: Backup,
  tenant: BackedUpTenant,
  { target, at, to }: { readonly target: string; readonly at: number; readonly to: number },
): Restored {
  const restored = { at, backup: name, from: manifest.startedAt, to: Math.max(manifest.startedAt, to) }
  try {
    bringTenant(path, tenant, { target, restored })
  } catch (error) {
    throw refusal(error)
  }
  return restored
}

/** Notes that a database lost the end of its log; what came after its last record until `to` is missing. */
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
      `${from} has data format ${newest}, of ${version}; this version knows ${formatVersion}`,
    )
  }
  for (const { file } of files) {
    if (!/^(?!\.\.?$)[^/\0]{1,255}$/.test(file))
      throw new GatewayError('store.corrupt', `${from} names ${file}, which is no name of a file`)
  }
  for (const { file } of tenants) {
    if (file !== 'selvedge.db' && !/^tenants\/[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.db$/.test(file))
      throw new GatewayError('store.corrupt', `${from} names ${file}, which is no place of a database`)
  }
}

/** Backups may lie in the data folder, and so may what the system makes. */
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
    `${dataFolder} holds ${foreign}; a backup is restored into an empty folder only`,
    { dataFolder, entry: foreign },
  )
}

interface Expected {
  readonly bytes: number
  readonly sha256: string
  readonly mode: number
}

/** Copies a file and gives it its name when it is what it has to be. */
function bring(source: string, target: string, { bytes, sha256, mode }: Expected): void {
  if (!existsSync(source)) throw new GatewayError('store.corrupt', `${source} is missing`, { file: source })
  const fresh = `${target}.new`
  const found = readThrough(source, { file: fresh, mode })
  if (found.sha256 !== sha256 || found.bytes !== bytes) {
    rmSync(fresh, { force: true })
    throw new GatewayError('store.corrupt', `${source} is not what its backup says`, { file: source })
  }
  place(fresh, target)
}

function bringTenant(
  from: string,
  { file, bytes, sha256 }: BackedUpTenant,
  { target, restored }: { readonly target: string; readonly restored: Restored },
): void {
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
  const fresh = `${target}.restored`
  for (const ending of ['', '-wal', '-shm', '-journal']) rmSync(fresh + ending, { force: true })
  bring(join(from, file), fresh, { bytes, sha256, mode: 0o644 })
  mark(fresh, restored)
  flush(fresh)
  place(fresh, target)
}

/** A gap without a stream, of no entity: what it holds in number nobody knows. */
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
