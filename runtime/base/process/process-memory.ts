/**
 * Reads the resident memory of the process. Reading opens a file descriptor, which may fail if none is left.
 */

let last = 0

/** Bytes of resident memory, or the last value read if it cannot be read now. */
export function residentBytes(): number {
  try {
    last = process.memoryUsage.rss()
  } catch {
    // EMFILE: return the previous value.
  }
  return last
}
