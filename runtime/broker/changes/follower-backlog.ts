/**
 * Since when the followers that tell others what happened still owe it, so that what history lets go meanwhile is kept
 * apart from what had been told. It pins nothing.
 */
export function createOwed() {
  const followers = new Set<() => number>()
  return Object.freeze({
    /** Who owes, and since when (commit time, ms); it is asked when something goes. Returns how that ends. */
    add(since: () => number): () => void {
      followers.add(since)
      return () => void followers.delete(since)
    },
    /** The earliest commit time (ms) of what somebody was not told; infinity where nobody follows. */
    since: (): number => Math.min(...[...followers].map((since) => since())),
  })
}

export type Owed = ReturnType<typeof createOwed>
