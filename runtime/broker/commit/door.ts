/**
 * The door: the only way to write. All writes of a tenant, from MQTT, HTTP and internal parts, are works in
 * one FIFO queue. When the previous group is on disk, the waiting works are decided in order against
 * committed state plus the works of their own group. Their rows are sent to the writer thread. Only after the
 * flush is staged state published and every work answered: acknowledged means on disk and readable. Upkeep is
 * added to groups; works wait only for upkeep that changes what they are compared with.
 */

import { limits } from '#base/limits/limits.ts'
import { inUnusedTurn } from '#base/load/yielding.ts'
import { collectDiscardedBetweenMarkings, noteDiscarded } from '#base/process/garbage-collection.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Writer } from '#store/writer/writer.ts'
import { createAnswerOrder } from './answer-order.ts'
import { createCommitTimes } from './commit-times.ts'
import { type DiskRoom, walBytesMax } from './disk-room.ts'
import { createGroup, type Group, type Stage } from './stage.ts'
import { createWorkQueue, type Work } from './work-queue.ts'

export interface Door {
  /** Queues a work; false when the queue is full (nothing was queued). */
  submit(work: Work): boolean
  /** Calls back once when a full queue has room again; never after `close`. */
  whenRoom(action: () => void): void
  /** Queues an urgent work and settles when it is on disk. @throws store.busy when the queue is full. */
  commit<T>(decide: (stage: Stage) => T, options?: CommitOptions): Promise<T>
  /**
   * Number of waiting works, the highest log number on disk and the latest commit time (ms) up to it. After
   * `datedUpTo`, no log row has a commit time earlier than that of its group.
   */
  status(): {
    waiting: number
    number: number
    at: number
    datedUpTo: number
    full: boolean
    fails: boolean
  }
  /** Starts a group even without a work, for upkeep that is due. */
  nudge(): void
  /**
   * Calls the listener after each commit, once it is readable; the returned function removes the listener. A
   * listener must be short and must not throw.
   */
  onCommit(listener: () => void): () => void
  /** Refuses new works, and settles when all queued works are on disk and answered. */
  close(): Promise<void>
}

export interface CommitOptions {
  readonly urgent?: boolean
  readonly bytes?: number
  /** @see Work.isSparing */
  readonly isSparing?: boolean
}

export interface DoorPorts extends Instruments {
  readonly tenant: string
  readonly writer: Pick<Writer, 'write'>
  /** The highest log number on disk at start. */
  readonly number: number
  /** Latest commit time on disk at start, ms; commit times never decrease. */
  readonly at: number
  /** Runs the decisions of a group in one read transaction; without it, each read sees the newest state. */
  readonly snapshot?: (<T>(decide: () => T) => T) | undefined
  readonly upkeep: GroupUpkeep
  /** Without it, disk space is never checked. */
  readonly room?: Pick<DiskRoom, 'hasRoom' | 'isShort' | 'walBytesMax' | 'keptBytes' | 'refused'> | undefined
  /** Called when a group failed because the database is damaged. */
  readonly onDamage: (error: GatewayError) => void
}

/** Upkeep of a tenant, as part of its groups. */
export interface GroupUpkeep {
  /** Called for each group about to be sent, also while upkeep pauses. */
  note(group: Group): void
  /** Adds upkeep that is due (folding, write-back, trimming). */
  attach(group: Group): void
  /** Whether upkeep must be committed before further works are decided. */
  isFirst(): boolean
}

/** Pause of upkeep after a group that carried it failed, ms. */
const upkeepPauseMs = 10_000
const upkeepSoonMs = 500
/** How often a group is decided again because a work threw halfway; then it ends before the next work. */
const restartsMax = 8

/** A group with the works decided in it. */
interface Decided {
  readonly group: Group
  readonly works: readonly Work[]
  readonly refused: Map<Work, GatewayError>
  readonly hasUpkeep: boolean
}

export function createDoor(ports: DoorPorts, settings: { lingerMs: number }): Door {
  const { clock, log, metrics, room, snapshot = (decide) => decide() } = ports
  const now = clock.monotonic
  const commits = metrics.counter('selvedge_commits_total')
  const retries = metrics.counter('selvedge_commit_retries_total')
  const seconds = metrics.histogram('selvedge_commit_seconds')

  const answers = createAnswerOrder({ log, metrics, onAnswered: notifyIdle })
  const queue = createWorkQueue()
  /** When the linger of the oldest waiting work began. */
  let firstAt = 0
  let inFlight = false
  let nudged = false
  let closed = false
  let diskFull = false
  let diskFails = false
  let upkeepPausedUntil = 0
  let lingerTimer: NodeJS.Timeout | undefined
  const [roomWaiters, idleWaiters] = [[] as (() => void)[], [] as (() => void)[]]
  const listeners = new Set<() => void>()
  const onDisk = { number: ports.number, at: ports.at, datedUpTo: ports.number }
  const times = createCommitTimes(clock, ports.at)
  /** Works of a failed group, to be retried one by one before the queue. */
  const singly: Work[] = []

  const waiting = (): number => queue.length() + singly.length

  function submit(work: Work): boolean {
    const isFirst = waiting() === 0
    if (closed || !queue.put(work)) return false
    if (isFirst) firstAt = now()
    if (!inFlight) schedule()
    return true
  }

  /** Starts a group now, or the linger timer when only a few observations wait. */
  function schedule(): void {
    if (inFlight) return
    if (waiting() === 0 && !nudged) {
      notifyIdle()
      return
    }
    const ready =
      nudged ||
      closed ||
      queue.hasUrgent() ||
      singly.length > 0 ||
      waiting() >= limits.lingerObservationsMax.value
    const lingerMs = ready ? 0 : firstAt + settings.lingerMs - now()
    if (lingerMs > 0) {
      lingerTimer ??= setTimeout(() => {
        lingerTimer = undefined
        nudged = true
        schedule()
      }, lingerMs)
      return
    }
    // Works submitted in this turn of the event loop join the group.
    inFlight = true
    if (lingerTimer !== undefined) clearTimeout(lingerTimer)
    lingerTimer = undefined
    inUnusedTurn(start)
  }

  function start(): void {
    const next = singly.shift()
    // Works do not wait for upkeep after it failed, nor if the door closes.
    nudged = next === undefined && !closed && now() >= upkeepPausedUntil && ports.upkeep.isFirst()
    const works = next !== undefined ? [next] : nudged ? [] : queue.take(groupBytesMax(room))
    if (queue.length() > 0) firstAt = now()
    const begunAt = now()
    const decided = snapshot(() => decide(works))
    // A large group is copied to the writer thread in a turn of its own.
    if (now() - begunAt < limits.usedTurnMs.value) send(decided)
    else inUnusedTurn(() => send(decided))
  }

  /** Decides works in a new group and adds the upkeep that is due, unless works are retried one by one. */
  function decide(works: Work[]): Decided {
    const group = createGroup({ at: times.next(), number: onDisk.number })
    const until = now() + limits.groupDecideMs.value
    const isLong = (): boolean =>
      group.closesTime() || group.rowCount() > limits.groupRowsMax.value || now() > until
    const refused = decideAll(works, group, isLong)
    ports.upkeep.note(group)
    const mark = group.mark()
    if (singly.length > 0 || now() < upkeepPausedUntil) return { group, works, refused, hasUpkeep: false }
    try {
      ports.upkeep.attach(group)
    } catch (error) {
      // No client waits for upkeep, and no work may fail because of it.
      log.error('gateway.fault', { error, during: 'upkeep' })
      upkeepPausedUntil = now() + upkeepPauseMs
      undo(group)
      return decide(works)
    }
    return { group, works, refused, hasUpkeep: group.mark() !== mark }
  }

  /**
   * Decides works in order, until the group is full. A work that throws is refused alone. If it had already
   * staged something, the whole group is undone and decided again without it, since nothing less removes its
   * traces. Works beyond the size of a group are postponed and removed from `works`.
   */
  function decideAll(works: Work[], group: Group, isLong: () => boolean): Map<Work, GatewayError> {
    const hasRoom = room?.hasRoom() ?? true
    const refused = new Map<Work, GatewayError>()
    let restarts = 0
    for (let i = 0; i < works.length; i++) {
      const work = works[i]!
      if (refused.has(work)) continue
      if (!hasRoom && work.isSparing !== true) {
        refused.set(work, noRoom)
        continue
      }
      const mark = group.mark()
      try {
        work.decide(group.stage)
        if (isLong()) postpone(works.splice(i + 1))
      } catch (error) {
        refused.set(work, toGatewayError(error))
        if (group.mark() === mark) continue
        undo(group)
        if (++restarts > restartsMax) postpone(works.splice(i + 1))
        i = -1
      }
    }
    return refused
  }

  /** Returns these works to the queue; the next group starts without linger. */
  function postpone(works: readonly Work[]): void {
    if (works.length === 0) return
    queue.putBack(works)
    nudged = true
  }

  function send(decided: Decided): void {
    const { group } = decided
    if (group.isEmpty()) {
      settle(decided)
      return
    }
    failpoint('door:before-send')
    const sentAt = now()
    const keptBytes = isSparing(decided) ? 0 : (room?.keptBytes ?? 0)
    try {
      ports.writer.write(
        {
          tenant: ports.tenant,
          walBytesMax: room?.walBytesMax() ?? walBytesMax,
          keptBytes,
          ...group.message(),
        },
        (error, outcome) => {
          if (error !== undefined) {
            failed(decided, error)
            return
          }
          diskFull = false
          diskFails = false
          commits.value++
          seconds.observe((now() - sentAt) / 1000)
          noteCommit(onDisk, group)
          times.committed(group.stage.at, group.closesTime())
          group.written(outcome)
          settle(decided)
        },
      )
    } catch (error) {
      // A row cannot be transferred to the writer thread.
      failed(decided, toGatewayError(error))
    }
  }

  /**
   * Handles a group that failed without a trace. On a full disk its works are refused. Otherwise they are
   * decided again one by one and without upkeep, because any of them may have failed the others.
   */
  function failed(decided: Decided, error: GatewayError): void {
    const { group, works, refused, hasUpkeep } = decided
    undo(group)
    const isFull = error.code === 'store.full'
    const isUnwritable = error.code === 'store.unwritable'
    if (isFull && !diskFull) log.error('store.full', { error: error.message })
    if (isUnwritable && !diskFails) log.error('store.unwritable', { error: error.message, ...error.details })
    diskFull = isFull
    diskFails = isUnwritable
    if (isFull) room?.refused()
    if (error.code === 'store.corrupt') ports.onDamage(error)
    if (hasUpkeep) upkeepPausedUntil = now() + (isFull ? pauseWhenFull(decided) : upkeepPauseMs)
    if (!isFull && !isUnwritable && (works.length > 1 || hasUpkeep)) {
      log.warn('store.commit-failed', { error: error.message, works: works.length, upkeep: hasUpkeep })
      retries.value++
      singly.push(...works)
      answer([], refused)
      return
    }
    for (const work of works) if (!refused.has(work)) refused.set(work, error)
    answer(works, refused)
  }

  function settle({ group, works, refused }: Decided): void {
    failpoint('door:before-publish')
    for (const error of group.publish()) log.error('gateway.fault', { error, during: 'publish' })
    failpoint('door:before-answer')
    answer(works, refused)
    for (const listener of listeners) listener()
    // V8 alone would keep payloads outside its heap until there are 64 MiB more of them.
    noteDiscarded(works.reduce((sum, { bytes }) => sum + bytes, 0))
    void collectDiscardedBetweenMarkings()
  }

  function undo(group: Group): void {
    for (const error of group.undo()) log.error('gateway.fault', { error, during: 'undo' })
  }

  /** The next group does not wait until all works are answered. */
  function answer(works: readonly Work[], refused: ReadonlyMap<Work, GatewayError>): void {
    inFlight = false
    answers.enqueue(works, refused)
    schedule()
    if (queue.hasRoom()) for (const waiter of roomWaiters.splice(0)) waiter()
  }

  /** Resolves the callers of `close` once the door is idle. */
  function notifyIdle(): void {
    if (inFlight || !answers.isDone() || waiting() > 0) return
    for (const waiter of idleWaiters.splice(0)) waiter()
  }

  function commit<T>(
    decide: (stage: Stage) => T,
    { urgent = true, bytes = 256, isSparing = false }: CommitOptions = {},
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let result: T
      const isTaken = submit({
        urgent,
        bytes,
        isSparing,
        decide(stage) {
          result = decide(stage)
        },
        answer(error) {
          if (error === undefined) resolve(result)
          else reject(error)
        },
      })
      if (isTaken) return
      reject(
        closed
          ? new GatewayError('store.closed', 'the gateway is stopping')
          : new GatewayError('store.busy', 'the write queue is full', { retryAfterSeconds: 1 }),
      )
    })
  }

  return Object.freeze({
    submit,
    whenRoom(action) {
      if (!closed && waiting() === 0) setImmediate(action)
      else if (!closed) roomWaiters.push(action)
    },
    commit,
    status: () => ({
      waiting: waiting(),
      ...onDisk,
      full: diskFull || room?.hasRoom() === false,
      fails: diskFails,
    }),
    nudge() {
      if (closed) return
      nudged = true
      schedule()
    },
    onCommit(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close() {
      closed = true
      roomWaiters.length = 0
      return new Promise<void>((resolve) => {
        idleWaiters.push(resolve)
        schedule()
      })
    },
  } satisfies Door)
}

/** On a full disk, upkeep is what frees space: it pauses only briefly, and not if it was with other works. */
const pauseWhenFull = (decided: Decided): number => (isSparing(decided) ? upkeepSoonMs : 0)

/** Whether a group holds only upkeep and works that are allowed on a full disk. */
const isSparing = ({ works, refused }: Decided): boolean =>
  works.every((work) => work.isSparing === true || refused.has(work))

/** Records times and numbers of a committed group. Rows from before the start may have any earlier time. */
function noteCommit(onDisk: { number: number; at: number; datedUpTo: number }, group: Group): void {
  // A group without log rows would not be known after a restart.
  if (group.number() > onDisk.number) onDisk.at = Math.max(onDisk.at, group.stage.at)
  onDisk.number = group.number()
  if (group.isDated()) onDisk.datedUpTo = onDisk.number
}

/** When disk space is short, groups are small, so that upkeep, which frees space, runs between writes. */
const groupBytesMax = (room: DoorPorts['room']): number =>
  room?.isShort() === true ? limits.shortGroupBytes.value : limits.groupBytesMax.value

/** Shared by all refused works: there may be thousands. */
const noRoom = new GatewayError('store.full', 'the disk or the quota is full')
