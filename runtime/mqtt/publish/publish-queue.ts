/**
 * The way of MQTT messages to the door. Their order is kept: where the door is full they wait, and while the disk is
 * full those refused wait for their next try, and nobody passes them who came later. How long a message may be tried
 * is said by whoever owns it.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Work } from '#broker/commit/work-queue.ts'

/** A work that knows its place among those offered; it is given when it is first offered. */
export interface Offered extends Work {
  place: number | undefined
}

export interface Admission {
  /** Hands a work to the door, now or as soon as there is room. False when it may not wait and would have to. */
  offer(work: Offered, mayWait: boolean): boolean
  /** Every work asks it first when it is decided. @throws store.full while works wait that the disk had no room for. */
  assertTurn(): void
  /** Takes a refused work back, to be tried again in a moment. */
  hold(work: Offered, error: GatewayError): void
  waiting(): number
  /** Forgets what waits; nothing is offered afterwards. */
  close(): void
}

const retryMs = 250
/** One for all: there may be thousands. */
const notYet = new GatewayError('store.full', 'others wait for room on the disk')

export function createAdmission(door: Pick<Door, 'submit' | 'whenRoom'>): Admission {
  let queue: Offered[] = []
  let held: Offered[] = []
  let places = 0
  /** A work is held because the disk is full: what the door has taken since must not overtake it. */
  let isDiskFull = false
  let timer: NodeJS.Timeout | undefined
  let armed = false
  let closed = false

  function drain(): void {
    armed = false
    if (closed || timer !== undefined) return
    let taken = 0
    while (taken < queue.length && door.submit(queue[taken]!)) taken++
    queue = queue.slice(taken)
    if (queue.length > 0) arm()
  }

  function arm(): void {
    if (armed) return
    armed = true
    door.whenRoom(drain)
  }

  function retry(): void {
    timer = undefined
    isDiskFull = false
    // They were refused group by group, and answered in slices.
    held.sort((a, b) => a.place! - b.place!)
    queue = held.concat(queue)
    held = []
    drain()
  }

  return Object.freeze({
    offer(work, mayWait) {
      if (closed) return false
      work.place ??= ++places
      const isFree = queue.length === 0 && timer === undefined
      if (isFree && door.submit(work)) return true
      if (!mayWait) return false
      queue.push(work)
      if (timer === undefined) arm()
      return true
    },
    assertTurn() {
      if (isDiskFull) throw notYet
    },
    hold(work, error) {
      if (closed) return
      held.push(work)
      isDiskFull ||= error.code === 'store.full' || error.code === 'store.unwritable'
      timer ??= setTimeout(retry, retryMs)
    },
    waiting: () => queue.length + held.length,
    close() {
      closed = true
      clearTimeout(timer)
      queue = []
      held = []
    },
  } satisfies Admission)
}
