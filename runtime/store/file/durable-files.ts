/**
 * Files that are on disk when the call returns: written or copied, flushed, and only then renamed into place.
 * A reader finds either the old or the new state, also after a power cut. Calls block, so only threads and
 * commands that may block use them.
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
  /** Hexadecimal. */
  readonly sha256: string
}

const blockBytes = 256 * 1024

/** Flushes a file or a folder to disk. */
export function flush(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Renames a flushed file or folder into place and flushes its new parent folder. */
export function place(from: string, to: string): void {
  renameSync(from, to)
  flush(dirname(to))
}

/** Returns size and hash of a file; with `copyTo` also copies it there with the given mode. */
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
 * Replaces a file that only its owner may read. When run as root, the new file gets the owner of its folder,
 * so that the gateway can read what a command under sudo wrote.
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
