/**
 * Queues MQTT messages for the door and preserves their order. They wait while the door is full. While the
 * disk is full, refused works wait for the next retry, and later works do not overtake them. The owner of a
 * work limits how long it is retried.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Work } from '#broker/commit/work-queue.ts'

/** A work with its place in the order, assigned when it is first offered. */
export interface Offered extends Work {
  place: number | undefined
}

export interface PublishQueue {
  /**
   * Submits a work to the door, now or as soon as there is room. Returns false when it must not wait but
   * would have to.
   */
  offer(work: Offered, mayWait: boolean): boolean
  /**
   * Every work calls it first when it is decided.
   * @throws store.full while earlier works wait for disk space.
   */
  assertTurn(): void
  /** Queues a refused work for the next retry. */
  hold(work: Offered, error: GatewayError): void
  waiting(): number
  /** Drops all queued works; nothing is submitted afterwards. */
  close(): void
}

const retryMs = 250
/** A single shared error, because there may be thousands of works. */
const notYet = new GatewayError('store.full', 'earlier messages are waiting for disk space')

export function createPublishQueue(door: Pick<Door, 'submit' | 'whenRoom'>): PublishQueue {
  let queue: Offered[] = []
  let held: Offered[] = []
  let places = 0
  /** True while a work is held because the disk is full: works already submitted must not overtake it. */
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
    // Works are refused group by group and answered in slices, so their order is restored here.
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
  } satisfies PublishQueue)
}
