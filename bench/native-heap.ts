/**
 * Bytes that a process holds of the heap of its C library, where SQLite and buffers live: pieces in use, without the free ones
 * between them, of which the library gives few back. Read from outside by the layout of glibc's malloc: each piece
 * begins with its size behind eight bytes, whose lowest bit says whether the piece before it is in use.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

/** Undefined where the heap is none of glibc's. The process is stopped for some ten milliseconds. */
export function nativeHeapBytes(pid: number): number | undefined {
  const map = readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .find((line) => line.endsWith('[heap]'))
  if (map === undefined) return undefined
  const [from, to] = map
    .split(' ', 1)[0]!
    .split('-')
    .map((hex) => Number.parseInt(hex, 16)) as [number, number]
  process.kill(pid, 'SIGSTOP')
  try {
    return inUse(read(pid, from, to))
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

function read(pid: number, from: number, to: number): Buffer {
  const bytes = Buffer.alloc(to - from)
  const file = openSync(`/proc/${pid}/mem`, 'r')
  try {
    let at = 0
    while (at < bytes.length) {
      const length = readSync(file, bytes, at, bytes.length - at, from + at)
      if (length === 0) break
      at += length
    }
    return bytes.subarray(0, at)
  } finally {
    closeSync(file)
  }
}

const headBytes = 16

function inUse(bytes: Buffer): number | undefined {
  let sum = 0
  for (let at = 0; ; ) {
    const word = bytes.readUInt32LE(at + 8)
    const size = bytes.readUInt32LE(at + 12) * 2 ** 32 + word - (word % 8)
    const next = at + size
    if (size < 2 * headBytes || next > bytes.length) return undefined
    // The last piece is what was never given out.
    if (next + headBytes > bytes.length) return sum
    if (bytes.readUInt32LE(next + 8) % 2 === 1) sum += size
    at = next
  }
}
