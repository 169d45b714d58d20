/**
 * A group under construction: the rows, log blobs and folds of one commit, plus actions to run in memory when
 * it is on disk or undone. The stage is the part of it that a work sees while it is decided.
 *
 * Log numbers are assigned here, in arrival order. Consecutive observations share one blob; a change record
 * ends it.
 */

import { limits } from '#base/limits/limits.ts'
import type { BootTime } from '#base/time/clock.ts'
import type { Json } from '#contract/pipeline.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { SqlValue } from '#store/chunks/sql-value.ts'
import type { EntityFold, StreamFold } from '#store/history/fold.ts'
import { unsettled } from '#store/tables/records.ts'
import type { WriteRow, WriteStatement } from '#store/writer/write-statements.ts'
import type { WriteOutcome } from '#store/writer/writer.ts'
import type { BlobMessage } from '#store/writer/writer-protocol.ts'

/** The operations of a work while it is decided. All of them are undone if the group fails. */
export interface Stage {
  /** Commit time in ms, the same for the whole group unless dated otherwise, never decreasing. */
  readonly at: number
  /** The Via chain of the write; undefined for a write that originates here. */
  readonly via: string | undefined
  /** This stage for a write with this Via chain. */
  from(via: string | undefined): Stage
  /**
   * This stage with an earlier commit time, so that parts of one operation share a time across groups.
   */
  dated(at: number): Stage
  /** This stage for an item of a batch operation; all items have the commit time `at` of the first. */
  ofBatch(at: number): Stage
  /** The commit time of the first item of the batch operation; undefined for any other write. */
  readonly batchAt: number | undefined
  /** This stage for a write whose times `times` (ms) were read from a clock that was not set. */
  unset(clock: BootTime, times: ReadonlySet<number>): Stage
  /** Adds a row to the group. */
  write(statement: WriteStatement, ...parameters: SqlValue[]): void
  /**
   * Adds one observation to the log and returns its log number; `late` ones never become current at replay.
   */
  observation(stream: number, time: number, value: Json, late: boolean): number
  /** Adds a change record of an entity to the log; its member `n` is its log number. */
  record(rid: number, change: object): number
  /** Packs the tail of a stream into chunks within this commit. */
  foldStream(fold: StreamFold): void
  /** Closes the group to further works, and makes the next group have a later commit time. */
  closeTime(): void
  /**
   * Registers an action that runs when the group is on disk, before the answers: publish in-memory state
   * here.
   */
  published(action: () => void): void
  /** Registers an action that runs when the group (or this work) is undone: restore in-memory state here. */
  undone(action: () => void): void
  /** Values kept for the duration of one group, so that later works see what earlier ones staged. */
  readonly scratch: Map<string, unknown>
}

export interface Group {
  readonly stage: Stage
  /** Changes whenever something is staged. */
  mark(): number
  isEmpty(): boolean
  /** Number of rows staged so far, without blobs and folds. */
  rowCount(): number
  number(): number
  /** The first log number this group may assign. */
  firstNumber(): number
  /** Whether a part of the group has an earlier commit time. */
  isDated(): boolean
  /** Whether the next group must have a later commit time. */
  closesTime(): boolean
  /** Number of log rows with times of a clock that was not set. */
  unsettledCount(): number
  foldEntity(fold: EntityFold): void
  message(): {
    rows: readonly WriteRow[]
    blobs: readonly BlobMessage[]
    streamFolds: StreamFold[]
    entityFolds: EntityFold[]
  }
  /** Called with the writer's outcome, before `publish`. */
  onWritten(action: (outcome: WriteOutcome) => void): void
  written(outcome: WriteOutcome): void
  /** Runs every action even if some throw, and returns the errors: the group is on disk anyway. */
  publish(): readonly unknown[]
  /** Undoes everything in reverse order and leaves the group empty. Returns the errors of the actions. */
  undo(): readonly unknown[]
}

interface OpenBlob extends Omit<BlobMessage, 'triples' | 'others'> {
  readonly triples: number[]
  readonly others: [number, Json][]
}

/** Times that were read from a clock that was not set. */
interface Unset {
  readonly clock: BootTime
  readonly times: ReadonlySet<number>
}

/** Facts that apply to the writes of a work. */
interface WriteFacts {
  readonly at: number
  readonly via: string | undefined
  readonly batchAt: number | undefined
  readonly unset: Unset | undefined
}

export function createGroup(start: { at: number; number: number }): Group {
  let number = start.number
  let rows: WriteRow[] = []
  let blobs: OpenBlob[] = []
  let open: OpenBlob | undefined
  let streamFolds: StreamFold[] = []
  let entityFolds: EntityFold[] = []
  let publishers: (() => void)[] = []
  let undoers: (() => void)[] = []
  let writtens: ((outcome: WriteOutcome) => void)[] = []
  let staged = 0
  let unsettledRows = 0
  let isDated = false
  let closesTime = false
  const scratch = new Map<string, unknown>()

  const stageAs = (facts: WriteFacts): Stage => ({
    at: facts.at,
    via: facts.via,
    batchAt: facts.batchAt,
    dated(at) {
      if (at < start.at) isDated = true
      return stageAs({ ...facts, at })
    },
    ofBatch(at) {
      if (at < start.at) isDated = true
      return stageAs({ ...facts, at, batchAt: at })
    },
    from: (via) => stageAs({ ...facts, via }),
    unset: (clock, times) => stageAs({ ...facts, unset: { clock, times } }),
    scratch,
    write(...row) {
      staged++
      rows.push(row)
    },
    observation(stream, time, value, late) {
      const { at, via, unset } = facts
      staged++
      const isFull = open !== undefined && open.triples.length >= limits.groupObservationsMax.value * 3
      const clock = clockOf(unset, time)
      const isOther = open?.at !== at || open.via !== via || open.unset !== clock
      if (open === undefined || isFull || isOther) {
        open = { n: ++number, at, via, triples: [], others: [], unset: clock }
        if (clock !== undefined) unsettledRows++
        blobs.push(open)
      }
      const isNumber = typeof value === 'number'
      if (!isNumber) open.others.push([open.triples.length / 3, value])
      open.triples.push(stream * 2 + (late ? 1 : 0), time, isNumber ? value : Number.NaN)
      return open.n
    },
    record(rid, change) {
      const { unset } = facts
      staged++
      open = undefined
      const text = JSON.stringify({ n: ++number, ...change })
      const body = unset === undefined ? text : withUnset(text, unset)
      if (body !== text) unsettledRows++
      const kind = body === text ? 2 : unsettled + 2
      rows.push(['log.change', number, start.at, kind, rid, body])
      return number
    },
    foldStream(fold) {
      staged++
      streamFolds.push(fold)
    },
    closeTime() {
      closesTime = true
    },
    published(action) {
      staged++
      publishers.push(action)
    },
    undone(action) {
      staged++
      undoers.push(action)
    },
  })
  const stage = stageAs({ at: start.at, via: undefined, batchAt: undefined, unset: undefined })

  return {
    stage,
    mark: () => staged,
    isEmpty: () =>
      rows.length === 0 && blobs.length === 0 && streamFolds.length === 0 && entityFolds.length === 0,
    rowCount: () => rows.length,
    number: () => number,
    firstNumber: () => start.number + 1,
    isDated: () => isDated,
    closesTime: () => closesTime,
    unsettledCount: () => unsettledRows,
    foldEntity(fold) {
      staged++
      entityFolds.push(fold)
    },
    message: () => ({
      rows,
      blobs: blobs.map(({ triples, unset, via, ...blob }) => ({
        ...blob,
        via,
        triples: new Float64Array(triples),
        unset: unset && { boot: unset.boot, offset: unset.offset },
      })),
      streamFolds,
      entityFolds,
    }),
    onWritten: (action) => writtens.push(action),
    written(outcome) {
      for (const action of writtens) action(outcome)
    },
    publish: () => runAll(publishers),
    undo() {
      const errors = runAll(undoers.toReversed())
      number = start.number
      unsettledRows = 0
      isDated = false
      closesTime = false
      rows = []
      blobs = []
      open = undefined
      streamFolds = []
      entityFolds = []
      publishers = []
      undoers = []
      writtens = []
      scratch.clear()
      return errors
    },
  }
}

const clockOf = (unset: Unset | undefined, time: number): BootTime | undefined =>
  unset?.times.has(time) ? unset.clock : undefined

/** Adds to a change record which of its times came from a clock that was not set; unchanged if none did. */
function withUnset(text: string, { clock: { boot, offset }, times }: Unset): string {
  const found = [...times].filter((time) => text.includes(`"${msToDateTime(time)}"`))
  return found.length === 0
    ? text
    : `${text.slice(0, -1)},"unset":${JSON.stringify({ boot, offset, times: found })}}`
}

function runAll(actions: readonly (() => void)[]): unknown[] {
  const errors: unknown[] = []
  for (const action of actions) {
    try {
      action()
    } catch (error) {
      errors.push(error)
    }
  }
  return errors
}
