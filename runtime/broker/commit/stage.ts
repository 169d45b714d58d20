/**
 * A group in the making: rows, log blobs and folds of one commit, and what must happen in memory when it is on disk
 * or when it left no trace. The stage is the part of it that a deciding work sees.
 *
 * Log numbers are given here, in arrival order: a run of observations shares one blob, which a change record ends.
 */

import { limits } from '#base/limits/limits.ts'
import type { BootTime } from '#base/time/clock.ts'
import type { Json } from '#contract/pipeline.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { SqlValue } from '#store/chunks/sql-value.ts'
import type { EntityFold, StreamFold } from '#store/history/fold.ts'
import { unsettled } from '#store/tables/records.ts'
import type { Row, WriteStatement } from '#store/writer/write-statements.ts'
import type { WriteOutcome } from '#store/writer/writer.ts'
import type { BlobMessage } from '#store/writer/writer-protocol.ts'

/** What a work may do while it is decided. Everything is undone when the group fails. */
export interface Stage {
  /** Commit time in ms, the same for the whole group unless dated otherwise, never decreasing. */
  readonly at: number
  /** The chain of other brokers that what is written came through; undefined where it began here. */
  readonly heard: string | undefined
  /** The same stage for what came through other brokers. */
  from(heard: string | undefined): Stage
  /** The same stage with an earlier commit time: what belongs together has one, also in several groups. */
  dated(at: number): Stage
  /** The same stage for an item of a batch operation; all items have the commit time `at` of the first. */
  ofBatch(at: number): Stage
  /** The commit time of the first item of the batch operation that is decided; undefined for any other write. */
  readonly batchAt: number | undefined
  /** The same stage, where these times (ms) are by a clock that was not set. */
  unset(clock: BootTime, times: ReadonlySet<number>): Stage
  /** Adds a row to the group. */
  write(statement: WriteStatement, ...parameters: SqlValue[]): void
  /** Adds one observation to the log and returns its log number; `late` ones never become current at replay. */
  observation(stream: number, time: number, value: Json, late: boolean): number
  /** Adds a change record of an entity to the log, which gets its number as its member `n`. */
  record(rid: number, body: object): Recorded
  /** Packs the tail of a stream into chunks within this commit. */
  foldStream(fold: StreamFold): void
  /** Lets nothing more into this group, and what begins behind it bears a later commit time. */
  closeTime(): void
  /** Runs when the group is on disk, before the answers: publish in-memory state here. */
  published(action: () => void): void
  /** Runs when the group (or this work) is undone: take back in-memory state that was changed while deciding. */
  undone(action: () => void): void
  /** Values kept for the length of one group, so that later works see what earlier ones staged. */
  readonly scratch: Map<string, unknown>
}

/** A change record that was logged, and about how large it is. */
export interface Recorded {
  readonly number: number
  readonly bytes: number
}

export interface Group {
  readonly stage: Stage
  /** Changes whenever something is staged. */
  mark(): number
  isEmpty(): boolean
  /** Rows staged so far, blobs and folds aside. */
  rowCount(): number
  number(): number
  /** The first log number this group may give. */
  firstNumber(): number
  /** Whether something bears an earlier commit time. */
  isDated(): boolean
  /** Whether what follows must bear a later one. */
  closesTime(): boolean
  /** Log rows with times by a clock that was not set. */
  unsettledCount(): number
  foldEntity(fold: EntityFold): void
  message(): {
    rows: readonly Row[]
    blobs: readonly BlobMessage[]
    streamFolds: StreamFold[]
    entityFolds: EntityFold[]
  }
  /** Called with what the writer reports, before `publish`. */
  onWritten(action: (outcome: WriteOutcome) => void): void
  written(outcome: WriteOutcome): void
  /** Runs every action, whatever the others do, and returns what they threw: the group is on disk anyway. */
  publish(): readonly unknown[]
  /** Takes everything back, last things first, and is empty again. Returns what the actions threw. */
  undo(): readonly unknown[]
}

interface OpenBlob {
  readonly n: number
  readonly at: number
  readonly heard: string | undefined
  readonly triples: number[]
  readonly others: [number, Json][]
  readonly unset: BootTime | undefined
}

/** Times by a clock that was not set. */
interface Unset {
  readonly clock: BootTime
  readonly times: ReadonlySet<number>
}

/** Facts that a work states of what it writes. */
interface WriteFacts {
  readonly at: number
  readonly heard: string | undefined
  readonly batchAt: number | undefined
  readonly unset: Unset | undefined
}

export function createGroup(start: { at: number; number: number }): Group {
  let number = start.number
  let rows: Row[] = []
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
    heard: facts.heard,
    batchAt: facts.batchAt,
    dated(at) {
      if (at < start.at) isDated = true
      return stageAs({ ...facts, at })
    },
    ofBatch(at) {
      if (at < start.at) isDated = true
      return stageAs({ ...facts, at, batchAt: at })
    },
    from: (heard) => stageAs({ ...facts, heard }),
    unset: (clock, times) => stageAs({ ...facts, unset: { clock, times } }),
    scratch,
    write(...row) {
      staged++
      rows.push(row)
    },
    observation(stream, time, value, late) {
      const { at, heard, unset } = facts
      staged++
      const isFull = open !== undefined && open.triples.length >= limits.groupObservationsMax.value * 3
      const clock = unset?.times.has(time) ? unset.clock : undefined
      const isOther = open?.at !== at || open.heard !== heard || open.unset !== clock
      if (open === undefined || isFull || isOther) {
        open = { n: ++number, at, heard, triples: [], others: [], unset: clock }
        if (clock !== undefined) unsettledRows++
        blobs.push(open)
      }
      const isNumber = typeof value === 'number'
      if (!isNumber) open.others.push([open.triples.length / 3, value])
      open.triples.push(stream * 2 + (late ? 1 : 0), time, isNumber ? value : Number.NaN)
      return open.n
    },
    record(rid, body) {
      const { unset } = facts
      staged++
      open = undefined
      const text = JSON.stringify({ n: ++number, ...body })
      const told = unset === undefined ? text : withUnset(text, unset)
      if (told !== text) unsettledRows++
      const kind = told === text ? 2 : unsettled + 2
      rows.push(['log.change', number, start.at, kind, rid, told])
      return { number, bytes: told.length }
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
  const stage = stageAs({ at: start.at, heard: undefined, batchAt: undefined, unset: undefined })

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
      blobs: blobs.map(({ triples, unset, ...blob }) => ({
        ...blob,
        triples: Float64Array.from(triples),
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

/** A change record that says which of its times are by a clock that was not set; as it was where none is. */
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
