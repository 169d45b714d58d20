/** The resident memory of the process, also while no file descriptor is left: reading it opens one. */

let last = 0

/** Bytes of resident memory; what was read before, where it cannot be read now. */
export function residentBytes(): number {
  try {
    last = process.memoryUsage.rss()
  } catch {
    // EMFILE: the reading before stands in.
  }
  return last
}
