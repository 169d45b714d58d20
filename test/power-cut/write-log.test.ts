/** A disk made of a log of writes holds what a flush covers, and of the rest what it is told was spared. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type RestoreOptions, restoreDisk } from './write-log.ts'

const sector = 512
const [flush, fua, discard] = [1, 2, 4]

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'write-log-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

type Entry = readonly [place: number, letter: string, flags?: number]

/** A log as qemu writes it: a head, then an entry and its data, each in sectors. */
function logOf(entries: readonly Entry[]): Buffer {
  const parts = [Buffer.alloc(sector)]
  parts[0]!.writeBigUInt64LE(0x6a736677736872n, 0)
  parts[0]!.writeBigUInt64LE(1n, 8)
  parts[0]!.writeBigUInt64LE(BigInt(entries.length), 16)
  parts[0]!.writeUInt32LE(sector, 24)
  for (const [place, letter, flags = 0] of entries) {
    const entry = Buffer.alloc(sector)
    entry.writeBigUInt64LE(BigInt(place), 0)
    entry.writeBigUInt64LE(letter === '' ? 0n : 1n, 8)
    entry.writeBigUInt64LE(BigInt(flags), 16)
    parts.push(entry)
    if (letter !== '' && flags !== discard) parts.push(Buffer.alloc(sector, letter))
  }
  return Buffer.concat(parts)
}

/** The letters of a disk of four sectors after a log; `.` is what nobody wrote. */
function diskAfter(entries: readonly Entry[], options?: RestoreOptions): string {
  const [log, disk] = [join(folder, 'log'), join(folder, 'disk')]
  writeFileSync(log, logOf(entries))
  writeFileSync(disk, Buffer.alloc(4 * sector, '.'))
  restoreDisk(log, disk, options)
  const bytes = readFileSync(disk)
  return [0, 1, 2, 3].map((n) => String.fromCharCode(bytes[n * sector]! || 48)).join('')
}

const written: readonly Entry[] = [
  [0, 'a'],
  [1, 'b'],
  [0, '', flush],
  [2, 'c'],
  [0, 'A'],
  [0, '', flush],
  [3, 'd'],
]

it('holds everything up to the last flush and nothing after it', () => {
  expect(diskAfter(written)).toBe('Abc.')
  expect(
    diskAfter([
      [0, 'a'],
      [1, 'b'],
    ]),
  ).toBe('....')
})

it('holds what was written through, and what is spared', () => {
  expect(diskAfter([...written, [1, 'X', fua]])).toBe('AXc.')
  expect(diskAfter(written, { isSpared: () => true })).toBe('Abcd')
})

it('lets a disk lie about its last flushes', () => {
  expect(diskAfter(written, { flushesIgnored: 1 })).toBe('ab..')
  expect(diskAfter(written, { flushesIgnored: 2 })).toBe('....')
})

it('knows discarded sectors, which have no data in the log', () => {
  expect(
    diskAfter([
      [0, 'a'],
      [1, 'b'],
      [0, 'x', discard],
      [2, 'c'],
      [0, '', flush],
    ]),
  ).toBe('0bc.')
})

it('takes nothing else for a log', () => {
  writeFileSync(join(folder, 'log'), Buffer.alloc(1024))
  writeFileSync(join(folder, 'disk'), '')
  expect(() => restoreDisk(join(folder, 'log'), join(folder, 'disk'))).toThrow('no log of writes')
})
