/**
 * A disk so small that a test can fill it: a tmpfs of its own, which takes root. Filling it leaves not one free
 * block; nothing else of the machine is touched.
 */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk {
  readonly folder: string
  /** Writes until nothing more can be written. */
  fill(): void
  /** Removes what `fill` wrote. */
  free(): void
  remove(): void
}

/** What keeps this machine from mounting one; undefined when nothing does. */
export function smallDiskObstacle(): string | undefined {
  const disk = mount(1)
  disk?.remove()
  return disk === undefined ? 'permission to mount a tmpfs' : undefined
}

export function openSmallDisk(megabytes: number): SmallDisk {
  const disk = mount(megabytes)
  if (disk === undefined) throw new TypeError('no tmpfs can be mounted here')
  return disk
}

function mount(megabytes: number): SmallDisk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-disk-'))
  const { status } = spawnSync('mount', [
    '-t',
    'tmpfs',
    '-o',
    `size=${megabytes}m,mode=0700`,
    'tmpfs',
    folder,
  ])
  if (status !== 0) {
    rmSync(folder, { recursive: true })
    return undefined
  }
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill: () => fill(ballast),
    free: () => rmSync(ballast, { force: true }),
    remove() {
      spawnSync('umount', ['-l', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function fill(file: string): void {
  const descriptor = openSync(file, 'a')
  const block = Buffer.alloc(64 * 1024)
  try {
    // A full disk takes a part, then nothing, then says so.
    for (let size = block.length; size > 0; size = Math.floor(size / 2)) {
      while (isWritten(descriptor, block.subarray(0, size)));
    }
  } finally {
    closeSync(descriptor)
  }
}

function isWritten(descriptor: number, bytes: Buffer): boolean {
  try {
    return writeSync(descriptor, bytes) > 0
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false
    throw error
  }
}
