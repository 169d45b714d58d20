/**
 * A timer wheel: many deadlines on one timer (Varghese and Lauck, 1987). An item has one deadline at a time;
 * a new one replaces it. Deadlines are met within one tick; those beyond one turn wait for a later one.
 */
import type { Clock } from './clock.ts'

export interface TimerWheel<T> {
  /** Sets the deadline of an item, ms of the monotonic clock. */
  set(item: T, deadline: number): void
  delete(item: T): void
  readonly size: () => number
  close(): void
}

/** @param due is called once per item whose deadline passed; the item then has none. */
export function createTimerWheel<T>(
  { clock, due }: { readonly clock: Pick<Clock, 'monotonic'>; readonly due: (item: T) => void },
  { tickMs, slots }: { readonly tickMs: number; readonly slots: number },
): TimerWheel<T> {
  const wheel = Array.from({ length: slots }, () => new Set<T>())
  const deadlines = new Map<T, number>()
  let tick = Math.floor(clock.monotonic() / tickMs)
  let timer: NodeJS.Timeout | undefined

  const slotOf = (deadline: number): Set<T> => wheel[Math.ceil(deadline / tickMs) % slots]!

  function turn(): void {
    const now = clock.monotonic()
    const until = Math.floor(now / tickMs)
    // After a long pause one turn passes every slot.
    for (let at = Math.max(tick + 1, until - slots + 1); at <= until; at++)
      for (const item of [...wheel[at % slots]!]) {
        if (deadlines.get(item)! > now) continue
        remove(item)
        due(item)
      }
    tick = until
    if (deadlines.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  function remove(item: T): void {
    const deadline = deadlines.get(item)
    if (deadline === undefined) return
    slotOf(deadline).delete(item)
    deadlines.delete(item)
  }

  return Object.freeze({
    set(item, deadline) {
      remove(item)
      // A deadline of the past is met at the next tick.
      const at = Math.max(deadline, (Math.floor(clock.monotonic() / tickMs) + 1) * tickMs)
      deadlines.set(item, at)
      slotOf(at).add(item)
      if (timer !== undefined) return
      tick = Math.floor(clock.monotonic() / tickMs)
      timer = setInterval(turn, tickMs).unref()
    },
    delete: remove,
    size: () => deadlines.size,
    close() {
      clearInterval(timer)
      timer = undefined
    },
  } satisfies TimerWheel<T>)
}
