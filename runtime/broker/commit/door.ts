/**
 * The door: the only way anything is written. All writes of a tenant, from MQTT, HTTP and inside, are works in
 * one FIFO. When the previous group is on disk, the waiting works are decided in order against committed state
 * plus their own group, the finished rows go to the writer thread, and only after the flush is staged state
 * published and every waiter answered: acknowledged means on disk and readable.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Writer } from '#store/writer/writer.ts'
import { createAnswers } from './answer-order.ts'
import { createCommitTimes } from './commit-times.ts'
import { type DiskRoom, walBytesMax } from './disk-room.ts'
import { createGroup, type Group, type Stage } from './stage.ts'
import { createWorkQueue, type Work } from './work-queue.ts'

export interface Door {
  /** Queues a work; false when the queue is full (nothing was taken). */
  submit(work: Work): boolean
  /** Calls back once when a full queue has room again; never after `close`. */
  whenRoom(action: () => void): void
  /** Queues an urgent work and settles when it is on disk. @throws store.busy when the queue is full. */
  commit<T>(decide: (stage: Stage) => T, options?: CommitOptions): Promise<T>
  /**
   * Works waiting, the highest log number on disk, the latest commit time (ms) up to it, and the number behind which
   * nothing bears an earlier time than its own.
   */
  status(): {
    waiting: number
    number: number
    at: number
    datedUpTo: number
    full: boolean
    fails: boolean
  }
  /** Sets a group going even without a work, for upkeep that is due. */
  nudge(): void
  /** Calls back after each commit, when it is readable, until what it returns is called. A listener does little and throws nothing. */
  onCommit(listener: () => void): () => void
  /** Refuses what comes from now on, and settles when all that is queued is on disk and answered. */
  close(): Promise<void>
}

export interface CommitOptions {
  readonly urgent?: boolean
  readonly bytes?: number
  /** @see Work.isSparing */
  readonly isSparing?: boolean
}

export interface DoorPorts {
  readonly tenant: string
  readonly writer: Pick<Writer, 'write'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** The highest log number on disk at start. */
  readonly number: number
  /** Latest commit time on disk at start, ms; commit times never decrease. */
  readonly at: number
  /** Runs the decisions of a group, which see one state of the database; left out, each read sees the newest. */
  readonly snapshot?: (<T>(decide: () => T) => T) | undefined
  /** Adds upkeep that is due (folding, write-back, trimming) to a group about to be sent. */
  readonly upkeep: (group: Group) => void
  /** Left out, there is always room. */
  readonly room?: Pick<DiskRoom, 'hasRoom' | 'isShort' | 'walBytesMax' | 'refused'> | undefined
  /** A group failed because the database is damaged. */
  readonly onDamage: (error: GatewayError) => void
}

/** How long upkeep rests after a group that carried it failed, ms. */
const upkeepPauseMs = 10_000
const upkeepSoonMs = 500
/** How often a group may be decided anew because a work threw halfway; then it ends before the next work. */
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

  const answers = createAnswers({ log, metrics, onAnswered: rest })
  const queue = createWorkQueue()
  /** Since when the oldest of them waits, as far as lingering goes. */
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
  const passed = { number: ports.number, at: ports.at, datedUpTo: ports.number }
  const times = createCommitTimes(clock, ports.at)
  /** Works to be tried one by one after a failed group; they come before the queue. */
  const singly: Work[] = []

  const waiting = (): number => queue.length() + singly.length

  function submit(work: Work): boolean {
    const isFirst = waiting() === 0
    if (closed || !queue.put(work)) return false
    if (isFirst) firstAt = now()
    if (!inFlight) schedule()
    return true
  }

  /** Starts a group now, or arms the linger when only observations wait and they are few. */
  function schedule(): void {
    if (inFlight) return
    if (waiting() === 0 && !nudged) {
      rest()
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
    setImmediate(start)
  }

  function start(): void {
    nudged = false
    const next = singly.shift()
    const works = next === undefined ? queue.take(groupBytesMax(room)) : [next]
    if (queue.length() > 0) firstAt = now()
    send(snapshot(() => decide(works)))
  }

  /** Decides works in a group of their own and adds the upkeep that is due, never to works that are tried singly. */
  function decide(works: Work[]): Decided {
    const group = createGroup({ at: times.next(), number: passed.number })
    const until = now() + limits.groupDecideMs.value
    const isLong = (): boolean =>
      group.closesTime() || group.rowCount() > limits.groupRowsMax.value || now() > until
    const refused = decideAll(works, group, { undo, postpone, isLong, hasRoom: room?.hasRoom() ?? true })
    const mark = group.mark()
    if (singly.length > 0 || now() < upkeepPausedUntil) return { group, works, refused, hasUpkeep: false }
    try {
      ports.upkeep(group)
    } catch (error) {
      // Nobody waits for upkeep, and nobody may fail for it.
      log.error('gateway.fault', { error, during: 'upkeep' })
      upkeepPausedUntil = now() + upkeepPauseMs
      undo(group)
      return decide(works)
    }
    return { group, works, refused, hasUpkeep: group.mark() !== mark }
  }

  /** Ends a group before these works. They have lingered long enough. */
  function postpone(works: readonly Work[]): void {
    if (works.length === 0) return
    queue.giveBack(works)
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
    try {
      ports.writer.write(
        { tenant: ports.tenant, walBytesMax: room?.walBytesMax() ?? walBytesMax, ...group.message() },
        (error, outcome) => {
          if (error !== undefined) {
            failed(decided, error)
            return
          }
          diskFull = false
          diskFails = false
          commits.value++
          seconds.observe((now() - sentAt) / 1000)
          pass(passed, group)
          times.took(group.stage.at, group.closesTime())
          group.written(outcome)
          settle(decided)
        },
      )
    } catch (error) {
      // A row that cannot travel to the writer.
      failed(decided, toGatewayError(error))
    }
  }

  /**
   * A group that left no trace. Where the disk is full its works are refused; else all of them are decided anew, one
   * by one and without upkeep, because one may have spoilt it for the others, and what one saw of another is undone.
   */
  function failed({ group, works, refused, hasUpkeep }: Decided, error: GatewayError): void {
    undo(group)
    const isFull = error.code === 'store.full'
    const isUnwritable = error.code === 'store.unwritable'
    if (isFull && !diskFull) log.error('store.full', { error: error.message })
    if (isUnwritable && !diskFails) log.error('store.unwritable', { error: error.message, ...error.details })
    diskFull = isFull
    diskFails = isUnwritable
    if (isFull) room?.refused()
    if (error.code === 'store.corrupt') ports.onDamage(error)
    // Where there is no room, upkeep is what makes it.
    if (hasUpkeep) upkeepPausedUntil = now() + (isFull ? upkeepSoonMs : upkeepPauseMs)
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
  }

  function undo(group: Group): void {
    for (const error of group.undo()) log.error('gateway.fault', { error, during: 'undo' })
  }

  /** The next group does not wait until all are answered. */
  function answer(works: readonly Work[], refused: ReadonlyMap<Work, GatewayError>): void {
    inFlight = false
    answers.give(works, refused)
    schedule()
    if (queue.hasRoom()) for (const waiter of roomWaiters.splice(0)) waiter()
  }

  /** Lets go of whoever waits for the door to come to rest. */
  function rest(): void {
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
      ...passed,
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

/** Notes what a group that is on disk says of times. Of what was written before the start nobody knows. */
function pass(passed: { number: number; at: number; datedUpTo: number }, group: Group): void {
  // What is not in the log is not known after a restart.
  if (group.number() > passed.number) passed.at = Math.max(passed.at, group.stage.at)
  passed.number = group.number()
  if (group.isDated()) passed.datedUpTo = passed.number
}

/** Where room is short, groups are small, so that what makes room goes along with what takes it. */
const groupBytesMax = (room: DoorPorts['room']): number =>
  room?.isShort() === true ? limits.shortGroupBytes.value : limits.groupBytesMax.value

/** One for all: there may be thousands. */
const noRoom = new GatewayError('store.full', 'there is no room on the disk, or in the quota')

/**
 * Decides works in order. One that throws is refused alone: when it had staged something already, the whole
 * group is undone and decided again without it, because nothing less would take its traces back. Works that are too
 * many for one group are postponed, and taken out of `works`.
 */
function decideAll(
  works: Work[],
  group: Group,
  {
    undo,
    postpone,
    isLong,
    hasRoom,
  }: {
    undo: (group: Group) => void
    postpone: (works: readonly Work[]) => void
    /** Whether the group has enough. */
    isLong: () => boolean
    hasRoom: boolean
  },
): Map<Work, GatewayError> {
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
