/**
 * Corrects times that were read from a clock that was not set. While such times wait, nothing is folded,
 * written back or sent to other brokers. Once the clock is set, some rows per commit are corrected: in the
 * log, in documents and in memory. Log rows contain the boot and monotonic time, so that a restart changes
 * nothing. Times sent by devices stay. For a boot that ended before its clock was set, no correction is
 * known: its times stay, as the earliest possible ones.
 */

import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import type { BootTime } from '#base/time/clock.ts'
import { createGroupShare } from '#broker/commit/group-share.ts'
import type { Group, Stage } from '#broker/commit/stage.ts'
import type { Json } from '#contract/pipeline.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { decodeChunk } from '#store/chunks/chunk-codec.ts'
import { slotOf } from '#store/chunks/chunk-key.ts'
import { decodeObservations, encodeObservations } from '#store/chunks/observation-blob.ts'
import type { History } from '#store/history/history-rows.ts'
import { isOfObservations, type LogRow, type Records } from '#store/tables/records.ts'
import type { DocumentDrafts } from './document-drafts.ts'
import type { LiveState } from './live-state.ts'
import type { Streams } from './streams.ts'
import type { LiveStream } from './unwritten.ts'

export interface UnsettledPorts extends ClockAndLog {
  readonly tenant: string
  readonly records: Records
  readonly history: History
  readonly live: LiveState
  readonly streams: Streams
  readonly documents: () => DocumentDrafts
}

/** Corrected times by original time, of an entity or a stream. */
type Moves = Map<number, number>
/**
 * These rows as a function. A time is corrected only if it was committed (ms) together with these rows, since
 * an unrelated instance may have the same time.
 */
type Move = (time: number, committedAt?: number) => number
/** These rows as they stand in JSON. */
type Texts = ReadonlyMap<string, string>

/** A row of observations with times from a clock that was not set. */
interface UnsetObservations extends ReturnType<typeof decodeObservations> {
  readonly n: number
}

/** A change record with such times among others. */
interface UnsetChange {
  readonly n: number
  readonly rid: number
  readonly unset: (BootTime & { readonly times: readonly number[] }) | undefined
  /** The rest of it, as JSON. */
  readonly text: string
}

/** 79 rows or 16 KiB, at 5,000 rows and 1 MiB per group. */
const shareAtStart = 2 ** -6

const encoder = new TextEncoder()
const dateTimes = /"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z)"/g

export function createUnsettled(ports: UnsettledPorts) {
  const { records, history, live, streams, clock } = ports
  let count = records.unsettledCount()
  const share = createGroupShare(shareAtStart)
  let settled = { observations: 0, corrected: 0 }

  /** Counts the rows of a group whose times wait. */
  function note(group: Group): void {
    const added = group.unsettledCount()
    group.onWritten(() => {
      count += added
    })
  }

  /**
   * Corrects what can be corrected, in a group that is about to be sent. Returns whether the rest of upkeep
   * has to wait. If too much waits, the oldest times stay uncorrected.
   */
  function attach(group: Group): boolean {
    if (count === 0 && group.unsettledCount() === 0) return false
    const isTrusted = clock.trust?.stretch() === undefined
    if (!isTrusted && !isTooMuch()) return true
    const rows = settle(group.stage, isTrusted ? correction : () => 0)
    // Values must not wait for rows that are not on disk.
    if (rows === 0) count = 0
    return isTrusted || rows < count
  }

  const correction = (then: BootTime): number => clock.trust?.correction(then) ?? 0

  const isTooMuch = (): boolean =>
    count > limits.unsettledRowsMax.value ||
    live.tailBytes() > limits.tailBytesMax.value ||
    live.streamCount() > limits.streamsLiveMax.value ||
    streams.unfoldedCount() > limits.entityRecordsUnfoldedMax.value

  /**
   * Whether times can be corrected now. New values wait until then, since they are compared with the current
   * ones.
   */
  const isFirst = (): boolean => count > 0 && clock.trust?.stretch() === undefined

  function settle(stage: Stage, correctionOf: (then: BootTime) => number): number {
    const begunAt = clock.monotonic()
    const byEntity = new Map<number, Moves>()
    const ridOf = createRidOf(ports)
    const { rows, observed, changes } = firstRows(ridOf)
    const moveBy = movesWithin(rows)
    let observations = 0
    let corrected = 0
    const { byStream, moveTriples } = createStreamMoves(ports)
    const shiftOf = (unset: BootTime | undefined): number => (unset === undefined ? 0 : correctionOf(unset))
    for (const { n, triples, others, unset } of observed) {
      const shift = shiftOf(unset)
      moveTriples(triples, shift)
      observations += triples.length / 3
      if (shift !== 0) corrected += triples.length / 3
      stage.write('log.rewrite', 1, encodeObservations({ triples, others }), n)
    }
    for (const { rid, unset } of changes) {
      const moves = movesOf(byEntity, rid)
      for (const time of unset?.times ?? []) moves.set(time, time + shiftOf(unset))
    }
    for (const [s, moves] of byStream) {
      refold(stage, s, moves, moveBy(moves))
      const rid = ridOf(s)
      if (rid !== undefined) for (const [from, to] of moves) movesOf(byEntity, rid).set(from, to)
    }
    const texts = new Map([...byEntity].map(([rid, moves]) => [rid, textsOf(moves)] as const))
    for (const { n, rid, text } of changes)
      stage.write('log.rewrite', 2, encoder.encode(moved(text, texts.get(rid)!)), n)
    for (const [rid, moves] of byEntity) settleEntity(stage, rid, moveBy(moves), texts.get(rid)!)
    share.adapt(stage, clock.monotonic() - begunAt)
    stage.published(() => {
      count -= rows.length
      settled.observations += observations
      settled.corrected += corrected
      if (count > 0) return
      ports.log.info('clock.settled', { tenant: ports.tenant, ...settled })
      settled = { observations: 0, corrected: 0 }
    })
    return rows.length
  }

  /** The first rows whose times wait, at least one if there are any. Each document is written whole. */
  function firstRows(ridOf: (s: number) => number | undefined) {
    const rows: LogRow[] = []
    const observed: UnsetObservations[] = []
    const changes: UnsetChange[] = []
    const rids = new Set<number | undefined>()
    const most = share.of(limits.unsettledRowsPerGroup.value)
    let bytes = share.of(limits.groupBytesMax.value)
    for (const row of records.logUnsettled(most)) {
      bytes -= row.body.length
      if (rows.length > 0 && (bytes < 0 || rids.size >= limits.writebacksPerGroup.value)) break
      rows.push(row)
      if (isOfObservations(row)) {
        const decoded = decodeObservations(row.body)
        observed.push({ n: row.n, ...decoded })
        for (let i = 0; i < decoded.triples.length; i += 3) rids.add(ridOf(streamOf(decoded.triples[i]!)))
      } else {
        changes.push(changeOf(row))
        rids.add(row.rid!)
      }
    }
    return { rows, observed, changes }
  }

  /** Packs chunks again that were folded early because their stream ended or changed its shape. */
  function refold(stage: Stage, s: number, moves: Moves, move: Move): void {
    const folded = history.stream(s)?.folded ?? 0
    if (folded === 0) return
    let from = Number.POSITIVE_INFINITY
    let to = Number.NEGATIVE_INFINITY
    for (const time of moves.keys()) [from, to] = [Math.min(from, time), Math.max(to, time)]
    for (const chunk of history.chunks(s, from, to)) {
      const { times, values, ...series } = decodeChunk(chunk)
      const movedTimes = times.map((time, i) => move(time, series.modified[i]))
      if (movedTimes.every((time, i) => time === times[i])) continue
      stage.write('chunk.delete', s, slotOf(chunk.t0))
      stage.foldStream({
        ...series,
        s,
        folded,
        times: movedTimes,
        values: Float64Array.from(values, (value) => (typeof value === 'number' ? value : Number.NaN)),
        others: [...values.entries()].filter(([, value]) => typeof value !== 'number'),
      })
    }
  }

  function settleEntity(stage: Stage, rid: number, move: Move, texts: Texts): void {
    for (const stream of live.entity(rid)?.streams ?? []) restamp(stage, stream, move)
    for (const n of streams.unfolded(rid)) {
      const row = records.logAt(n)
      if (row?.kind !== 2) continue
      // An unrelated change record may contain a corrected observation time.
      const before = Buffer.from(row.body).toString()
      const text = moved(before, texts)
      if (text !== before) stage.write('log.rewrite', 2, encoder.encode(text), n)
    }
    ports.documents().writeBack(stage, rid, (text) => moved(text, texts))
  }

  function restamp(stage: Stage, stream: LiveStream, move: Move): void {
    streams.touch(stage, stream)
    const wasTime = stream.nextTime
    stream.nextTime = move(wasTime)
    if (stream.nextTime < wasTime) becomeNewest(stage, stream, move)
    stream.newestTime = move(stream.newestTime)
    if (stream.nextTime > stream.newestTime) {
      stream.newestTime = stream.nextTime
      stream.newestValue = stream.nextValue
    }
    stage.published(() => {
      stream.time = stream.nextTime
      const { times, modified } = stream.tail
      for (let i = 0; i < times.length; i++) times[i] = move(times[i]!, modified[i])
    })
  }

  /**
   * A trusted clock that ran ahead may have stored a value that is newer than the current one with its
   * corrected time.
   */
  function becomeNewest(stage: Stage, stream: LiveStream, move: Move): void {
    const { tail, shape } = stream
    const take = (time: number, value: Json): void => {
      if (time > stream.nextTime) [stream.nextTime, stream.nextValue] = [time, value]
    }
    for (const [i, time] of tail.times.entries())
      if (tail.shapes.findLast(({ from }) => from <= i)!.shape === shape)
        take(move(time, tail.modified[i]), tail.values[i]!)
    const chunk = history.lastChunk(stream.s)
    if (chunk !== undefined && chunk.t1 > stream.nextTime) {
      const { times, modified, values, shapes, shapeOf } = decodeChunk(chunk)
      for (const [i, time] of times.entries())
        if (shapes[shapeOf?.[i] ?? 0] === shape) take(move(time, modified[i]), values[i]!)
    }
    stage.published(() => {
      stream.value = stream.nextValue
    })
  }

  return Object.freeze({
    note,
    attach,
    /** Whether times wait for correction, or new ones may arrive. */
    isHeld: (): boolean => count > 0 || clock.trust?.stretch() !== undefined,
    isFirst,
    /** Whether a group should be started for it alone. */
    isDue: (): boolean => isFirst() || (count > 0 && isTooMuch()),
    count: () => count,
  })
}

/** Corrects observations in order, with the newest corrected time of each stream. */
function createStreamMoves({ live, history }: Pick<UnsettledPorts, 'live' | 'history'>) {
  /** The newest corrected time so far. */
  const newest = new Map<number, number>()
  const newestBefore = new Map<number, number>()
  const byStream = new Map<number, Moves>()
  /** The newest time before the first of these observations. */
  function before(s: number): number {
    const known = newestBefore.get(s)
    if (known !== undefined) return known
    const [first] = byStream.get(s)!.keys()
    const times = live.stream(s)?.tail.times ?? []
    let most = history.lastTime(s) ?? Number.NEGATIVE_INFINITY
    for (let i = 0, end = times.indexOf(first!); i < end; i++) most = Math.max(most, times[i]!)
    newestBefore.set(s, most)
    return most
  }
  function isLate(s: number, from: number, to: number): boolean {
    const known = newest.get(s) ?? Number.NEGATIVE_INFINITY
    newest.set(s, Math.max(known, to))
    // If the correction moves times forward, late observations stay late and no others become late.
    return to < from && (to < known || to < before(s))
  }

  function moveTriples(triples: Float64Array, shift: number): void {
    for (let i = 0; i < triples.length; i += 3) {
      const [s, from, to] = [streamOf(triples[i]!), triples[i + 1]!, triples[i + 1]! + shift]
      movesOf(byStream, s).set(from, to)
      triples[i + 1] = to
      // With corrected times, an observation that arrived after a newer one did not become current.
      if (isLate(s, from, to)) triples[i] = 2 * s + 1
    }
  }

  return { byStream, moveTriples }
}

/** The stream number in a stored triple, whose lowest bit marks late observations. */
const streamOf = (lateStream: number): number => Math.floor(lateStream / 2)

/** Looks up the entity of a stream, once. */
function createRidOf({ live, history }: Pick<UnsettledPorts, 'live' | 'history'>) {
  const known = new Map<number, number | undefined>()
  return (s: number): number | undefined => {
    if (!known.has(s)) known.set(s, live.stream(s)?.entity.rid ?? history.stream(s)?.rid)
    return known.get(s)
  }
}

export type Unsettled = ReturnType<typeof createUnsettled>

function movesOf(all: Map<number, Moves>, key: number): Moves {
  const known = all.get(key) ?? new Map<number, number>()
  all.set(key, known)
  return known
}

/** Restricts corrections to instances committed together with these rows. */
function movesWithin(rows: readonly LogRow[]): (moves: Moves) => Move {
  let from = Number.POSITIVE_INFINITY
  let to = Number.NEGATIVE_INFINITY
  for (const { at } of rows) [from, to] = [Math.min(from, at), Math.max(to, at)]
  return (moves) =>
    (time, committedAt = from) =>
      committedAt >= from && committedAt <= to ? (moves.get(time) ?? time) : time
}

function changeOf({ n, rid, body }: LogRow): UnsetChange {
  const { unset, ...change } = JSON.parse(Buffer.from(body).toString()) as Pick<UnsetChange, 'unset'>
  return { n, rid: rid!, unset, text: JSON.stringify(change) }
}

const textsOf = (moves: Moves): Texts =>
  new Map([...moves].map(([from, to]) => [msToDateTime(from), msToDateTime(to)]))

/** A JSON text with all occurrences of these times corrected. */
function moved(text: string, texts: Texts): string {
  return text.replace(dateTimes, (whole, time: string) => {
    const to = texts.get(time)
    return to === undefined ? whole : `"${to}"`
  })
}
