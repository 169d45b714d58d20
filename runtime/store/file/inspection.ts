/**
 * Inspects a data folder from another process: its tenants, how much each holds, and whether a gateway uses
 * it. Nothing is migrated or repaired, and unreadable files are reported as such.
 */
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { toGatewayError } from '#base/register/errors.ts'
import { type Database, openReader } from './database.ts'
import { formatVersion } from './database-schema.ts'
import { lockUnlessInUse } from './folder-lock.ts'

export interface TenantFacts {
  /** Empty for the default tenant. */
  readonly name: string
  readonly format: number
  readonly counts: Readonly<Record<Counted, number>>
}

export type Counted =
  | 'entities'
  | 'streams'
  | 'subscriptions'
  | 'deliveries'
  | 'deadLetters'
  | 'quarantined'
  | 'gaps'

export interface FolderFacts {
  /** Size of all files in the folder. */
  readonly bytes: number
  readonly inUse: boolean
  /** Version of the data format that this program writes. */
  readonly knownFormat: number
  readonly tenants: readonly TenantFacts[]
  /** Files that could not be read, with the reason. */
  readonly unreadable: readonly { readonly file: string; readonly reason: string }[]
}

const countSql: Readonly<Record<Counted, string>> = {
  entities: 'SELECT count(*) FROM entity',
  streams: 'SELECT count(*) FROM stream WHERE retired = 0',
  subscriptions: 'SELECT count(*) FROM subscription',
  deliveries: 'SELECT count(*) FROM delivery',
  deadLetters: 'SELECT count(*) FROM dead_letter',
  quarantined: 'SELECT count(*) FROM quarantine',
  gaps: 'SELECT count(*) FROM gap',
}

/** True when a gateway runs in the folder; undefined when the folder cannot be read. */
export function isFolderInUse(folder: string): boolean | undefined {
  try {
    if (!existsSync(folder) || tenantFiles(folder).length === 0) return false
    const unlock = lockUnlessInUse(folder)
    unlock?.()
    return unlock === undefined
  } catch {
    return undefined
  }
}

/** Returns undefined when the folder does not exist. No gateway can start in the folder during the call. */
export function inspectFolder(folder: string): FolderFacts | undefined {
  if (!existsSync(folder)) return undefined
  const files = tenantFiles(folder)
  const tenants: TenantFacts[] = []
  const unreadable: { file: string; reason: string }[] = []
  const unlock = files.length === 0 ? undefined : lockUnlessInUse(folder)
  const inUse = files.length > 0 && unlock === undefined
  try {
    for (const { name, file } of files) {
      try {
        tenants.push(inUse ? inspectTenant(name, file) : withoutTrace(file, () => inspectTenant(name, file)))
      } catch (error) {
        unreadable.push({ file, reason: toGatewayError(error).message })
      }
    }
    return { bytes: bytesUnder(folder), inUse, knownFormat: formatVersion, tenants, unreadable }
  } finally {
    unlock?.()
  }
}

/** Reading a WAL database creates side files. Those that did not exist before are deleted afterwards. */
function withoutTrace<T>(file: string, read: () => T): T {
  const sideFiles = [`${file}-shm`, `${file}-wal`].filter((side) => !existsSync(side))
  try {
    return read()
  } finally {
    for (const side of sideFiles) rmSync(side, { force: true })
  }
}

/** The databases of a data folder, the default tenant's first. */
export function tenantFiles(folder: string): { name: string; file: string }[] {
  const main = join(folder, 'selvedge.db')
  const others = join(folder, 'tenants')
  return [
    ...(existsSync(main) ? [{ name: '', file: main }] : []),
    ...(existsSync(others) ? readdirSync(others) : [])
      .filter((file) => file.endsWith('.db'))
      .toSorted()
      .map((file) => ({ name: file.slice(0, -'.db'.length), file: join(others, file) })),
  ]
}

function inspectTenant(name: string, file: string): TenantFacts {
  const database = openReader(file)
  try {
    const format = database.pragma('user_version', { simple: true }) as number
    return { name, format, counts: countsOf(database) }
  } finally {
    database.close()
  }
}

/** Counts the rows of each kind; zeros when a newer version wrote the file. */
export function countsOf(database: Database): TenantFacts['counts'] {
  const isKnown = (database.pragma('user_version', { simple: true }) as number) <= formatVersion
  const counts = Object.entries(countSql).map(([what, sql]) => [what, isKnown ? count(database, sql) : 0])
  return Object.fromEntries(counts) as Record<Counted, number>
}

function count(database: Database, sql: string): number {
  return database.prepare<[], number>(sql).pluck().get() ?? 0
}

function bytesUnder(folder: string): number {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce(
      (sum, { parentPath, name }) =>
        sum + (statSync(join(parentPath, name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    )
}
