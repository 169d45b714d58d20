/**
 * The way of MQTT messages to the door. Their order is kept: where the door is full they wait, and when the disk
 * refuses a commit, those refused are tried again before those that came later. How long a message may be tried is
 * said by whoever owns it.
 */
import type { Door } from '#broker/door.ts'
import type { Work } from '#broker/work-queue.ts'

export interface Admission {
  /** Hands a work to the door, now or as soon as there is room. False when it may not wait and would have to. */
  offer(work: Work, mayWait: boolean): boolean
  /** Takes a refused work back, to be tried again in a moment. */
  hold(work: Work): void
  waiting(): number
  /** Forgets what waits; nothing is offered afterwards. */
  close(): void
}

const retryMs = 250

export function createAdmission(door: Pick<Door, 'submit' | 'whenRoom'>): Admission {
  let queue: Work[] = []
  let held: Work[] = []
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
    queue = held.concat(queue)
    held = []
    drain()
  }

  return Object.freeze({
    offer(work, mayWait) {
      if (closed) return false
      const isFree = queue.length === 0 && timer === undefined
      if (isFree && door.submit(work)) return true
      if (!mayWait) return false
      queue.push(work)
      if (timer === undefined) arm()
      return true
    },
    hold(work) {
      if (closed) return
      held.push(work)
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
