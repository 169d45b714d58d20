/**
 * Last observation times from the log. They are newer than the tables, which are written at most once per
 * `limits.indexSeenMs` to limit wear of flash cards. Keys are node numbers of observations.
 */

export interface Seen {
  /** ms; undefined if the tables are current. */
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
    /** Called when the observation's document is newer. */
    forget: (observation: number): void => void times.delete(observation),
    clear: (): void => times.clear(),
    size: () => times.size,
    entries: (): Iterable<readonly [observation: number, at: number]> => times,
  })
}
