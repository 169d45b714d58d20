/**
 * Files that are on disk when the call returns: written or copied, flushed, and only then given their name. Whoever looks
 * finds the old state or the new one, also after a power cut. Calls block; they are for threads and commands that may.
 */
import { createHash } from 'node:crypto'
import {
  closeSync,
  fchownSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'

export interface Content {
  readonly bytes: number
  /** In hexadecimal digits. */
  readonly sha256: string
}

const blockBytes = 256 * 1024

/** Flushes a file or a folder. */
export function flush(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Gives a flushed file or folder its name. */
export function place(from: string, to: string): void {
  renameSync(from, to)
  flush(dirname(to))
}

/** What a file holds; with `copyTo` it is written there as well, with this mode. */
export function readThrough(
  file: string,
  copyTo?: { readonly file: string; readonly mode: number },
): Content {
  const source = openSync(file, 'r')
  let target: number | undefined
  try {
    if (copyTo !== undefined) target = openSync(copyTo.file, 'w', copyTo.mode)
    const hash = createHash('sha256')
    const block = Buffer.alloc(blockBytes)
    let bytes = 0
    for (let read = readSync(source, block); read > 0; read = readSync(source, block)) {
      const part = block.subarray(0, read)
      hash.update(part)
      for (let done = 0; target !== undefined && done < read; ) done += writeSync(target, part, done)
      bytes += read
    }
    if (target !== undefined) fsyncSync(target)
    return { bytes, sha256: hash.digest('hex') }
  } finally {
    closeSync(source)
    if (target !== undefined) closeSync(target)
  }
}

/**
 * Puts a text in the place of a file that only its owner may read. Written by root it belongs to whom the folder belongs to, so that
 * a command under sudo leaves nothing that the gateway cannot read.
 */
export function replaceSecret(file: string, text: string): void {
  const fresh = `${file}.new`
  rmSync(fresh, { force: true })
  const descriptor = openSync(fresh, 'wx', 0o600)
  try {
    if (process.getuid?.() === 0) {
      const { uid, gid } = statSync(dirname(file))
      fchownSync(descriptor, uid, gid)
    }
    writeSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  place(fresh, file)
}

/** Writes a small file and flushes it. */
export function writeDurably(file: string, text: string, mode: number): void {
  const descriptor = openSync(file, 'w', mode)
  try {
    writeSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
