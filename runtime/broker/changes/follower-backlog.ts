/**
 * Tracks since when each follower has a backlog of changes to send. Retention uses it to count separately the
 * history that it deletes before a follower has sent it. It pins nothing.
 */
export function createFollowerBacklogs() {
  const followers = new Set<() => number>()
  return Object.freeze({
    /**
     * Adds a follower. `since` returns the commit time (ms) where its backlog begins. Returns a function that
     * removes it.
     */
    add(since: () => number): () => void {
      followers.add(since)
      return () => void followers.delete(since)
    },
    /** The earliest commit time (ms) of all backlogs; infinity without followers. */
    since: (): number => Math.min(...[...followers].map((since) => since())),
  })
}

export type FollowerBacklogs = ReturnType<typeof createFollowerBacklogs>
