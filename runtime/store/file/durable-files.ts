/**
 * Files that are on disk when the call returns: written or copied, flushed, and only then renamed into place.
 * A reader finds either the old or the new state, also after a power cut. Calls block, so only threads and
 * commands that may block use them.
 */
import { closeSync, fchownSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

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
