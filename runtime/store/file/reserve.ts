/**
 * The disk reserve: a file of fixed size in the data folder. It is deleted when the disk is full, so that
 * there is space for deletions, and written again when there is space. Writing it does not block the event
 * loop.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { failpoint } from '#base/register/failpoints.ts'

export interface Reserve {
  /** Size of the reserve file. */
  readonly bytes: number
  isHeld(): boolean
  /** Deletes the reserve. Returns false when there was none. */
  release(): boolean
  /** Writes the reserve. Returns false when that failed. */
  make(): Promise<boolean>
}

const blockBytes = 256 * 1024
/** Largest share of the disk that the reserve may occupy. */
const shareMax = 0.05

export function createReserve(dataFolder: string, wantedBytes: number): Reserve {
  const file = join(dataFolder, 'reserve')
  const fresh = `${file}.new`
  const { blocks, bsize } = statfsSync(dataFolder)
  const bytes = Math.floor(Math.min(wantedBytes, blocks * bsize * shareMax))
  // An incomplete reserve file, or one of another size, does not count.
  rmSync(fresh, { force: true })
  if (existsSync(file) && statSync(file).size !== bytes) rmSync(file)
  const isHeld = (): boolean => bytes > 0 && existsSync(file)
  return Object.freeze({
    bytes,
    isHeld,
    release() {
      if (!isHeld()) return false
      rmSync(file, { force: true })
      failpoint('reserve:released')
      return true
    },
    async make() {
      if (bytes === 0 || isHeld()) return true
      // Random bytes cannot be compressed, so the file really occupies its size.
      const block = randomBytes(Math.min(blockBytes, bytes))
      // Imported here, because most starts find the reserve in place.
      const { open, rename } = await import('node:fs/promises')
      try {
        const target = await open(fresh, 'w', 0o600)
        try {
          for (let left = bytes; left > 0; left -= block.length)
            await target.write(block, 0, Math.min(left, block.length))
          await target.sync()
        } finally {
          await target.close()
        }
        await rename(fresh, file)
        return true
      } catch {
        rmSync(fresh, { force: true })
        return false
      }
    },
  } satisfies Reserve)
}

export interface FolderRoom {
  /** Bytes that this process may still write to the disk. */
  readonly freeBytes: number
  /** Bytes of databases and snapshots; backups and the reserve are not counted. */
  readonly usedBytes: number
}

export function roomOf(dataFolder: string): FolderRoom {
  const { bavail, bsize } = statfsSync(dataFolder)
  const snapshots = join(dataFolder, 'snapshots')
  const folders = [dataFolder, join(dataFolder, 'tenants'), ...foldersIn(snapshots)]
  const usedBytes = folders.reduce((sum, folder) => sum + databaseBytes(folder), 0)
  return { freeBytes: bavail * bsize, usedBytes }
}

function foldersIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
}

function databaseBytes(folder: string): number {
  const names = existsSync(folder) ? readdirSync(folder) : []
  return names
    .filter((name) => name.includes('.db'))
    .reduce((sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0)
}
