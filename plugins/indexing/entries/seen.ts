/**
 * When observations were last made, as the log tells it: newer than the tables, which are written at most once per
 * `limits.indexSeenMs`, because a flash card would wear by more. Numbers are those of observations.
 */

export interface Seen {
  /** ms; undefined where the tables know best. */
  of(observation: number): number | undefined
}

export type SeenTimes = ReturnType<typeof createSeen>

export function createSeen() {
  const times = new Map<number, number>()
  return Object.freeze({
    of: (observation: number) => times.get(observation),
    note(observation: number, at: number): void {
      if (at > (times.get(observation) ?? Number.NEGATIVE_INFINITY)) times.set(observation, at)
    },
    /** Its document is newer. */
    forget: (observation: number): void => void times.delete(observation),
    clear: (): void => times.clear(),
    size: () => times.size,
    entries: (): Iterable<readonly [observation: number, at: number]> => times,
  })
}
