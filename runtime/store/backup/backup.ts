/**
 * Makes a backup of the data folder of a running or stopped gateway. Each tenant is copied as of one instant
 * through a connection of its own, so that no writer waits; the small files are copied beside it. The copies
 * are read again and verified if the setting `backup.verify` or the command requires it. The backup gets its
 * name only when all of it is on disk; the next backup deletes interrupted ones. Then `manifest.ts` deletes
 * the backups beyond the number to keep. This code blocks, so the gateway runs it in a thread of its own.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { limits } from '#base/limits/limits.ts'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Clock } from '#base/time/clock.ts'
import { gatewayId } from '#config/load/gateway-id.ts'
import { type Database, openReader } from '#store/file/database.ts'
import { formatVersion } from '#store/file/database-schema.ts'
import { flush, place, writeDurably } from '#store/file/durable-files.ts'
import { makeFolder } from '#store/file/folder-lock.ts'
import { countsOf, type TenantFacts, tenantFiles } from '#store/file/inspection.ts'
import { readThrough } from './file-content.ts'
import {
  type BackedUpFile,
  type BackedUpTenant,
  type Backup,
  backupName,
  type Manifest,
  manifestName,
  pruneBackups,
} from './manifest.ts'

export interface BackupOptions {
  readonly dataFolder: string
  /** Target folder; created when absent. */
  readonly folder: string
  /** Whether the copies are read again and verified. */
  readonly verify: boolean
  /** Number of backups of this gateway to keep; all when left out. */
  readonly keep?: number | undefined
  /** The product version that makes the backup. */
  readonly version: string
  /** Bytes of the disk that must stay free. */
  readonly sparedBytes: number
  /** Whether others need the disk meanwhile: the copy then pauses for half of the time. */
  readonly isGentle: boolean
}

export interface BackupProgress {
  readonly doneBytes: number
  readonly ofBytes: number
}

const pageBytes = 4096

/**
 * @throws GatewayError store.full without space for the backup, store.corrupt for a database or copy that is
 * damaged, store.failed for an error of the disk.
 */
export async function makeBackup(
  options: BackupOptions,
  { clock, onProgress }: { clock: Clock; onProgress: (progress: BackupProgress) => void },
): Promise<Backup> {
  const { dataFolder, folder } = options
  const startedAt = clock.now()
  const databases = tenantFiles(dataFolder)
  if (databases.length === 0)
    throw new GatewayError('store.failed', `${dataFolder} holds no gateway data`, { dataFolder })
  const ofBytes = databases.reduce((sum, { file }) => sum + bytesOf(file), 0)
  try {
    makeFolder(folder)
  } catch (error) {
    throw new GatewayError('store.failed', `${folder} cannot be created: ${(error as Error).message}`, {
      folder,
    })
  }
  const gateway = gatewayId(dataFolder)
  sweep(folder, gateway)
  assertRoom(options, ofBytes)
  const partial = join(folder, `.partial-${gateway}-${process.pid}-${backupName(startedAt)}`)
  try {
    mkdirSync(join(partial, 'tenants'), { recursive: true, mode: 0o700 })
    const tenants: BackedUpTenant[] = []
    let before = 0
    for (const each of databases) {
      const file = each.name === '' ? basename(each.file) : join('tenants', basename(each.file))
      const report = (doneBytes: number): void => onProgress({ doneBytes: before + doneBytes, ofBytes })
      tenants.push({ ...(await copyTenant(each, join(partial, file), options, report)), file })
      before += bytesOf(each.file)
      failpoint('backup:between-files')
    }
    const manifest: Manifest = {
      product: 'selvedge',
      manifest: 1,
      version: options.version,
      dataFormat: formatVersion,
      gatewayId: gateway,
      startedAt,
      finishedAt: clock.now(),
      verified: options.verify,
      tenants,
      files: copySmallFiles(dataFolder, partial),
    }
    writeDurably(join(partial, manifestName), `${JSON.stringify(manifest, undefined, 2)}\n`, 0o600)
    for (const made of [join(partial, 'tenants'), partial]) flush(made)
    failpoint('backup:before-name')
    const name = placeFree(partial, folder, startedAt)
    if (options.keep !== undefined)
      pruneBackups(folder, manifest.gatewayId, { keep: options.keep, made: name })
    return { name, path: join(folder, name), manifest }
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    throw refusal(error)
  }
}

const bytesOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/**
 * Renames the backup to the first free name for its time, because other gateways may use the same folder.
 * Returns the name.
 */
function placeFree(partial: string, folder: string, ms: number): string {
  const first = backupName(ms)
  for (let i = 1; ; i++) {
    const name = i === 1 ? first : `${first}-${i}`
    if (existsSync(join(folder, name))) continue
    try {
      place(partial, join(folder, name))
      return name
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    }
  }
}

/**
 * Deletes unfinished backups of this gateway whose process has ended. Backups of other gateways may be
 * running elsewhere.
 */
function sweep(folder: string, gateway: string): void {
  for (const name of readdirSync(folder)) {
    const [, whose, pid] = /^\.partial-(.+)-(\d+)-backup-/.exec(name) ?? []
    if (whose === gateway && !isAlive(Number(pid)))
      rmSync(join(folder, name), { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return pid !== process.pid
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function freeIn(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** Ends the backup when the disk fills up during the copy, because the gateway needs the remaining space. */
function assertSpared({ folder, sparedBytes }: BackupOptions): void {
  const free = freeIn(folder)
  if (free >= sparedBytes) return
  throw new GatewayError(
    'store.full',
    `the backup was cancelled and its partial files deleted: ${folder} has ${free} bytes free, but ${sparedBytes} must stay free`,
    { free, sparedBytes },
  )
}

function assertRoom({ folder, sparedBytes }: BackupOptions, bytes: number): void {
  const free = freeIn(folder)
  if (free >= bytes + sparedBytes) return
  throw new GatewayError(
    'store.full',
    `${folder} has ${free} bytes free; the backup needs ${bytes}, and ${sparedBytes} must stay free`,
    {
      free,
      bytes,
      sparedBytes,
    },
  )
}

async function copyTenant(
  { name, file }: { readonly name: string; readonly file: string },
  target: string,
  options: BackupOptions,
  onProgress: (bytes: number) => void,
): Promise<Omit<BackedUpTenant, 'file'>> {
  const { verify, isGentle } = options
  const source = openReader(file)
  source.pragma(cacheSize)
  let facts: TenantFacts
  let number: number
  try {
    // A single read transaction: later commits of the writer are not visible, and the copy never has to
    // restart.
    source.exec('BEGIN')
    number = source.prepare<[], number | null>('SELECT max(n) FROM log').pluck().get() ?? 0
    facts = factsOf(source, name)
    let stepAt = performance.now()
    await source.backup(target, {
      progress({ totalPages, remainingPages }) {
        onProgress((totalPages - remainingPages) * pageBytes)
        failpoint('backup:mid-copy')
        assertSpared(options)
        if (isGentle) pause(Math.min(performance.now() - stepAt, limits.backupRestMsMax.value))
        stepAt = performance.now()
        return limits.backupPagesPerStep.value
      },
    })
    source.exec('COMMIT')
  } finally {
    source.close()
  }
  finish(target, verify ? facts : undefined)
  return { ...facts, number, ...readThrough(target) }
}

/**
 * Every page is read once, so a larger cache would not help. Memory of a thread also stays allocated beside
 * the gateway's.
 */
const cacheSize = 'cache_size = -1024'

/** Turns the copy into one file without side files, and verifies it if `facts` are given. */
function finish(target: string, facts: TenantFacts | undefined): void {
  const copy = new BetterSqlite3(target)
  try {
    copy.pragma(cacheSize)
    copy.pragma('journal_mode = DELETE')
    if (facts === undefined) return
    const found = copy.pragma('integrity_check(1)', { simple: true })
    if (found !== 'ok') throw new GatewayError('store.corrupt', `the copy ${target} is damaged: ${found}`)
    const counts = JSON.stringify(factsOf(copy, facts.name).counts)
    if (counts !== JSON.stringify(facts.counts))
      throw new GatewayError(
        'store.corrupt',
        `the row counts of the copy ${target} differ from the source: ${counts}`,
        { counts: facts.counts },
      )
  } finally {
    copy.close()
    flush(target)
  }
}

function factsOf(database: Database, name: string): TenantFacts {
  const format = database.pragma('user_version', { simple: true }) as number
  return { name, format, counts: countsOf(database) }
}

function pause(ms: number): void {
  if (ms >= 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Copies the other files of the data folder: credentials, the gateway's identity, certificates. */
function copySmallFiles(dataFolder: string, partial: string): BackedUpFile[] {
  const files: BackedUpFile[] = []
  for (const entry of readdirSync(dataFolder, { withFileTypes: true })) {
    const { name: file } = entry
    if (!entry.isFile() || isExcluded(file)) continue
    const source = join(dataFolder, file)
    const { size, mode } = statSync(source)
    if (size > limits.backupFileBytesMax.value) continue
    const target = { file: join(partial, file), mode: mode & 0o777 }
    files.push({ file, mode: target.mode, ...readThrough(source, target) })
  }
  return files
}

/** Databases with their side files, and files that a process creates for itself. */
const isExcluded = (file: string): boolean =>
  file === 'lock' || file === 'reserve' || file === manifestName || file.startsWith('selvedge.db')

function refusal(error: unknown): GatewayError {
  if (isGatewayError(error)) return error
  const { code = '', message } = error as { code?: string; message: string }
  const isFull = code === 'SQLITE_FULL' || code === 'ENOSPC'
  const isDamaged = code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')
  const entry = isFull ? 'store.full' : isDamaged ? 'store.corrupt' : 'store.failed'
  return new GatewayError(entry, `the backup failed: ${message}`, { code }, error)
}
