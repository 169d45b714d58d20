/**
 * Works that go one after the other, in the order of asking, whatever becomes of those before. Nothing waits for a work but those
 * behind it, so a work that asks for a turn of its own and waits for it waits for ever.
 */

/** Settles as the work does, which begins when all before it have settled. */
export type Turn = <T>(work: () => Promise<T>) => Promise<T>

export function createTurns(): Turn {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work)
    last = mine.catch(() => undefined)
    return mine
  }
}
