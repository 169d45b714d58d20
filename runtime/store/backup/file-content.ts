/**
 * Size and hash of a file, and copies made while it is read. Calls block, so only threads and commands that
 * may block use them.
 */
import { createHash } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs'

export interface Content {
  readonly bytes: number
  /** Hexadecimal. */
  readonly sha256: string
}

const blockBytes = 256 * 1024

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
