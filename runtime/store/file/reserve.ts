/**
 * Room that is kept for need: a file of some bytes in the data folder that is given up when the disk is full, so that
 * there is room to delete, and made anew when there is room again. Making it takes nobody's time but the disk's.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { failpoint } from '#base/register/failpoints.ts'

export interface Reserve {
  /** Bytes it has when it is held. */
  readonly bytes: number
  isHeld(): boolean
  /** Gives it up. False when there was none. */
  release(): boolean
  /** Makes it. False when it could not be made. */
  make(): Promise<boolean>
}

const blockBytes = 256 * 1024
/** The most of a disk that lies idle for need. */
const shareMax = 0.05

export function createReserve(dataFolder: string, wantedBytes: number): Reserve {
  const file = join(dataFolder, 'reserve')
  const fresh = `${file}.new`
  const { blocks, bsize } = statfsSync(dataFolder)
  const bytes = Math.floor(Math.min(wantedBytes, blocks * bsize * shareMax))
  // One that was cut short, or is of another size, is none.
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
      // What cannot be compressed takes the room that it says.
      const block = randomBytes(Math.min(blockBytes, bytes))
      // Most starts find it made.
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
  /** Bytes of databases and snapshots; backups and the reserve do not count. */
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
