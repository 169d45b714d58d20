/**
 * The log of a disk's writes as qemu's blklogwrites keeps it (the format of the kernel's dm-log-writes): which bytes went where,
 * and between which of them the guest had a flush completed. Made into a disk again, it holds what a disk that lost power
 * may hold: everything up to the last flush, and of what came after it nothing, or what chance spared.
 */
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'

const magic = 0x6a_73_66_77_73_68_72n
const [flushFlag, fuaFlag, discardFlag] = [1n, 2n, 4n]

export interface Restored {
  /** Writes that the disk holds. */
  readonly kept: number
  /** Writes after the last flush that it lost. */
  readonly lost: number
  readonly flushes: number
}

export interface RestoreOptions {
  /** Whether a write that no flush covers is there all the same; none is unless told. */
  readonly isSpared?: () => boolean
  /** Flushes at the end that are taken as never made: the disk that lies, to see whether somebody notices. */
  readonly flushesIgnored?: number
}

interface Entry {
  readonly offset: number
  readonly length: number
  readonly flags: bigint
  /** Where its data is in the log. */
  readonly dataAt: number
}

/** Writes into a disk, which is as it was when the log began, what the log says of it. */
export function restoreDisk(logFile: string, diskFile: string, options: RestoreOptions = {}): Restored {
  const log = openSync(logFile, 'r')
  const disk = openSync(diskFile, 'r+')
  try {
    const entries = entriesOf(log)
    const flushAt = entries.flatMap(({ flags }, i) => ((flags & flushFlag) === 0n ? [] : [i]))
    const end = (flushAt.at(-1 - (options.flushesIgnored ?? 0)) ?? -1) + 1
    let kept = 0
    let lost = 0
    for (const [i, entry] of entries.entries()) {
      if (entry.length === 0) continue
      const isSafe = i < end || (entry.flags & fuaFlag) !== 0n
      if (!isSafe && options.isSpared?.() !== true) lost++
      else {
        copy(log, disk, entry)
        kept++
      }
    }
    return { kept, lost, flushes: flushAt.length }
  } finally {
    closeSync(log)
    closeSync(disk)
  }
}

function entriesOf(log: number): Entry[] {
  const head = bytesAt(log, 0, 28)
  if (head.readBigUInt64LE(0) !== magic) throw new TypeError('this is no log of writes')
  const count = Number(head.readBigUInt64LE(16))
  const sector = head.readUInt32LE(24)
  const size = fstatSync(log).size
  const entries: Entry[] = []
  for (let at = sector; entries.length < count && at + 32 <= size; ) {
    const entry = bytesAt(log, at, 32)
    const flags = entry.readBigUInt64LE(16)
    const length = Number(entry.readBigUInt64LE(8)) * sector
    const dataAt = at + sector
    entries.push({ offset: Number(entry.readBigUInt64LE(0)) * sector, length, flags, dataAt })
    at = dataAt + ((flags & discardFlag) === 0n ? length : 0)
  }
  return entries
}

function copy(log: number, disk: number, { offset, length, flags, dataAt }: Entry): void {
  const data = (flags & discardFlag) === 0n ? bytesAt(log, dataAt, length) : Buffer.alloc(length)
  for (let done = 0; done < length; ) done += writeSync(disk, data, done, length - done, offset + done)
}

function bytesAt(file: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let done = 0; done < length; ) {
    const read = readSync(file, bytes, done, length - done, at + done)
    if (read === 0) throw new TypeError(`the log ends before byte ${at + length}`)
    done += read
  }
  return bytes
}
