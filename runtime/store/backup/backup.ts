/**
 * Makes a backup of a data folder, of a running gateway or a stopped one: each tenant as of one instant, read by a
 * connection of its own so that nobody waits for it, and the small files beside them. It is read through again when that
 * is asked for, and gets its name only when all of it is on disk; what was cut short is swept away by the next one.
 * It blocks, so the gateway has it made by a thread of its own.
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
import { flush, place, readThrough, writeDurably } from '#store/file/durable-files.ts'
import { makeFolder } from '#store/file/folder-lock.ts'
import { countsOf, type TenantFacts, tenantFiles } from '#store/file/inspection.ts'
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
  /** Where it is put; made when absent. */
  readonly folder: string
  /** Whether the copies are read through. */
  readonly verify: boolean
  /** How many of this gateway are kept; left out, all. */
  readonly keep?: number | undefined
  /** The version that makes it. */
  readonly version: string
  /** Bytes of the disk that are to stay free. */
  readonly sparedBytes: number
  /** Whether somebody else needs the disk meanwhile: half of the time is left to them. */
  readonly isGentle: boolean
}

export interface BackupProgress {
  readonly doneBytes: number
  readonly ofBytes: number
}

const pageBytes = 4096

/**
 * @throws GatewayError store.full when there is no room for it, store.corrupt when a database cannot be copied or its
 * copy is not whole, store.failed when the disk refuses.
 */
export async function makeBackup(
  options: BackupOptions,
  { clock, onProgress }: { clock: Clock; onProgress: (progress: BackupProgress) => void },
): Promise<Backup> {
  const { dataFolder, folder } = options
  const startedAt = clock.now()
  const databases = tenantFiles(dataFolder)
  if (databases.length === 0)
    throw new GatewayError('store.failed', `there is no gateway's data in ${dataFolder}`, { dataFolder })
  const ofBytes = databases.reduce((sum, { file }) => sum + bytesOf(file), 0)
  try {
    makeFolder(folder)
  } catch (error) {
    throw new GatewayError('store.failed', `${folder} cannot be made: ${(error as Error).message}`, {
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
      const told = (doneBytes: number): void => onProgress({ doneBytes: before + doneBytes, ofBytes })
      tenants.push({ ...(await copyTenant(each, join(partial, file), options, told)), file })
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
    if (options.keep !== undefined) pruneBackups(folder, manifest.gatewayId, options.keep)
    return { name, path: join(folder, name), manifest }
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    throw refusal(error)
  }
}

const bytesOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** Gives it the first name of its time that is free: other gateways may put theirs there at the same hour. Returns the name. */
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

/** Takes away what processes of this gateway that are gone left unfinished; those of others run elsewhere. */
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

/** The disk may fill while a copy is made; what it lacks then is what the gateway needs. */
function assertSpared({ folder, sparedBytes }: BackupOptions): void {
  const free = freeIn(folder)
  if (free >= sparedBytes) return
  throw new GatewayError(
    'store.full',
    `the backup was ended, and what there was of it removed: ${folder} has ${free} bytes free, and ${sparedBytes} are to stay so`,
    { free, sparedBytes },
  )
}

function assertRoom({ folder, sparedBytes }: BackupOptions, bytes: number): void {
  const free = freeIn(folder)
  if (free >= bytes + sparedBytes) return
  throw new GatewayError('store.full', `${folder} has ${free} bytes free; the backup takes ${bytes}`, {
    free,
    bytes,
    sparedBytes,
  })
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
    // One instant: what the writer adds from now on is not seen, and the copy never begins anew.
    source.exec('BEGIN')
    number = source.prepare<[], number | null>('SELECT max(n) FROM log').pluck().get() ?? 0
    facts = factsOf(source, name)
    let stepAt = performance.now()
    await source.backup(target, {
      progress({ totalPages, remainingPages }) {
        onProgress((totalPages - remainingPages) * pageBytes)
        failpoint('backup:mid-copy')
        assertSpared(options)
        if (isGentle) rest(Math.min(performance.now() - stepAt, limits.backupRestMsMax.value))
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

/** All is read once, so more would only be kept from the gateway, whose memory a thread's stays beside for good. */
const cacheSize = 'cache_size = -1024'

/** The copy as one file without side files, read through where it is to be verified. */
function finish(target: string, facts: TenantFacts | undefined): void {
  const copy = new BetterSqlite3(target)
  try {
    copy.pragma(cacheSize)
    copy.pragma('journal_mode = DELETE')
    if (facts === undefined) return
    const found = copy.pragma('integrity_check(1)', { simple: true })
    if (found !== 'ok') throw new GatewayError('store.corrupt', `the copy ${target} is not whole: ${found}`)
    const counts = JSON.stringify(factsOf(copy, facts.name).counts)
    if (counts !== JSON.stringify(facts.counts))
      throw new GatewayError('store.corrupt', `the copy ${target} holds ${counts}`, { counts: facts.counts })
  } finally {
    copy.close()
    flush(target)
  }
}

function factsOf(database: Database, name: string): TenantFacts {
  const format = database.pragma('user_version', { simple: true }) as number
  return { name, format, counts: countsOf(database) }
}

function rest(ms: number): void {
  if (ms >= 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** What lies beside the databases: credentials, who the gateway is, certificates. */
function copySmallFiles(dataFolder: string, partial: string): BackedUpFile[] {
  const files: BackedUpFile[] = []
  for (const entry of readdirSync(dataFolder, { withFileTypes: true })) {
    const { name: file } = entry
    if (!entry.isFile() || isOwnBusiness(file)) continue
    const source = join(dataFolder, file)
    const { size, mode } = statSync(source)
    if (size > limits.backupFileBytesMax.value) continue
    const target = { file: join(partial, file), mode: mode & 0o777 }
    files.push({ file, mode: target.mode, ...readThrough(source, target) })
  }
  return files
}

/** Databases with what belongs to them, and what a process makes for itself. */
const isOwnBusiness = (file: string): boolean =>
  file === 'lock' || file === 'reserve' || file === manifestName || file.startsWith('selvedge.db')

function refusal(error: unknown): GatewayError {
  if (isGatewayError(error)) return error
  const { code = '', message } = error as { code?: string; message: string }
  const isFull = code === 'SQLITE_FULL' || code === 'ENOSPC'
  const isDamaged = code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')
  const entry = isFull ? 'store.full' : isDamaged ? 'store.corrupt' : 'store.failed'
  return new GatewayError(entry, `the backup failed: ${message}`, { code }, error)
}
