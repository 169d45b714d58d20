/**
 * A timer wheel: many deadlines on one timer (Varghese and Lauck, 1987). An item has one deadline at a time;
 * a new one replaces it. Deadlines are met within one tick; those beyond one turn wait for a later one.
 */
import type { Clock } from './clock.ts'

export interface TimerWheel<T> {
  /** Sets the deadline of an item, ms of the monotonic clock. */
  set(item: T, deadline: number): void
  delete(item: T): void
  /** Undefined if the item has none. */
  deadline(item: T): number | undefined
  readonly size: () => number
  close(): void
}

/** Deadlines by item. An owner of many items may store them with its items. */
export type Deadlines<T> = Pick<Map<T, number>, 'get' | 'delete' | 'size'> & {
  set(item: T, deadline: number): void
}

export interface TimerWheelPorts<T> {
  readonly clock: Pick<Clock, 'monotonic'>
  /** Called once per item whose deadline passed; the item then has none. */
  readonly due: (item: T) => void
  readonly deadlines?: Deadlines<T>
}

export function createTimerWheel<T>(
  { clock, due, deadlines = new Map<T, number>() }: TimerWheelPorts<T>,
  { tickMs, slots }: { readonly tickMs: number; readonly slots: number },
): TimerWheel<T> {
  /** An item is in the slot of its deadline or in an earlier one, and may be in others that it had before. */
  const wheel = Array.from({ length: slots }, () => new Set<T>())
  let tick = Math.floor(clock.monotonic() / tickMs)
  let timer: NodeJS.Timeout | undefined

  const slotOf = (deadline: number): Set<T> => wheel[Math.ceil(deadline / tickMs) % slots]!

  function turn(): void {
    const now = clock.monotonic()
    const until = Math.floor(now / tickMs)
    // After a long pause one turn passes every slot.
    for (let at = Math.max(tick + 1, until - slots + 1); at <= until; at++) pass(wheel[at % slots]!, now)
    tick = until
    if (deadlines.size > 0) return
    clearInterval(timer)
    timer = undefined
    for (const slot of wheel) slot.clear()
  }

  /** Meets the deadlines of a slot that passed, and moves items whose deadline was put off. */
  function pass(slot: Set<T>, now: number): void {
    for (const item of [...slot]) {
      slot.delete(item)
      const deadline = deadlines.get(item)
      if (deadline === undefined) continue
      if (deadline > now) slotOf(deadline).add(item)
      else {
        deadlines.delete(item)
        due(item)
      }
    }
  }

  return Object.freeze({
    set(item, deadline) {
      // A deadline of the past is met at the next tick.
      const at = Math.max(deadline, (Math.floor(clock.monotonic() / tickMs) + 1) * tickMs)
      const before = deadlines.get(item)
      deadlines.set(item, at)
      // An item whose deadline is put off moves when its slot passes.
      if (before === undefined || at < before) slotOf(at).add(item)
      if (timer !== undefined) return
      tick = Math.floor(clock.monotonic() / tickMs)
      timer = setInterval(turn, tickMs).unref()
    },
    delete: (item) => void deadlines.delete(item),
    deadline: (item) => deadlines.get(item),
    size: () => deadlines.size,
    close() {
      clearInterval(timer)
      timer = undefined
    },
  } satisfies TimerWheel<T>)
}
