/**
 * Times by a clock that was not set: while they wait, nothing is folded, written back or told to other brokers; when the
 * clock is set, one commit puts them right in the log, in documents and in memory. The rows in the log say by which
 * boot and monotonic time they are, so that a restart changes nothing. Times that come from devices stay.
 * Of a boot that ended before its clock was set nothing is known: its times stand, as the earliest that they can be.
 */
import type { BootTime, Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import { msToDateTime } from '#ngsi-ld/datetime.ts'
import type { History } from '#store/history.ts'
import { decodeObservations, encodeObservations } from '#store/observation-blob.ts'
import { isOfObservations, type LogRow, type Records } from '#store/records.ts'
import type { Documents } from './documents.ts'
import type { LiveState, LiveStream } from './live.ts'
import type { Group, Stage } from './stage.ts'
import type { Streams } from './streams.ts'

export interface UnsettledPorts {
  readonly tenant: string
  readonly records: Records
  readonly history: History
  readonly live: LiveState
  readonly streams: Streams
  readonly documents: () => Documents
  readonly clock: Clock
  readonly log: Log
}

/** What becomes of times, of an entity or a stream. */
type Moves = Map<number, number>

/** A change record with the times in it that are by a clock that was not set. */
interface UnsetChange {
  readonly unset?: BootTime & { readonly times: readonly number[] }
}

const encoder = new TextEncoder()
const dateTimes = /"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z)"/g

export function createUnsettled(ports: UnsettledPorts) {
  const { records, history, live, streams, clock } = ports
  let count = records.unsettledCount()

  /** Puts right what can be, in a group that is about to be sent. Returns whether the rest of upkeep has to wait. */
  function attach(group: Group): boolean {
    const added = group.unsettledCount()
    if (added > 0)
      group.onWritten(() => {
        count += added
      })
    if (count === 0) return added > 0
    // What an earlier boot left is known to stand as soon as the clock is believed.
    if (clock.trust?.stretch() === undefined) settle(group.stage, correction)
    else if (isTooMuch()) settle(group.stage, () => 0)
    return true
  }

  const correction = (then: BootTime): number => clock.trust?.correction(then) ?? 0

  const isTooMuch = (): boolean =>
    count > limits.unsettledRowsMax.value ||
    live.tailBytes() > limits.tailBytesMax.value ||
    live.streamCount() > limits.streamsLiveMax.value

  function settle(stage: Stage, correctionOf: (then: BootTime) => number): void {
    const byStream = new Map<number, Moves>()
    const byEntity = new Map<number, Moves>()
    let [rows, observations, corrected] = [0, 0, 0]
    for (const row of records.logUnsettled()) {
      rows++
      if (isOfObservations(row)) {
        const { triples, others, unset } = decodeObservations(row.body)
        const shift = unset === undefined ? 0 : correctionOf(unset)
        for (let i = 0; i < triples.length; i += 3) {
          movesOf(byStream, Math.floor(triples[i]! / 2)).set(triples[i + 1]!, triples[i + 1]! + shift)
          triples[i + 1] = triples[i + 1]! + shift
        }
        observations += triples.length / 3
        if (shift !== 0) corrected += triples.length / 3
        stage.write('log.rewrite', 1, encodeObservations({ triples, others }), row.n)
      } else {
        const { unset } = changeOf(row)
        const shift = unset === undefined ? 0 : correctionOf(unset)
        const moves = movesOf(byEntity, row.rid!)
        for (const time of unset?.times ?? []) moves.set(time, time + shift)
      }
    }
    for (const [s, moves] of byStream) {
      const rid = live.stream(s)?.entity.rid ?? history.stream(s)?.rid
      for (const [from, to] of rid === undefined ? [] : moves) movesOf(byEntity, rid!).set(from, to)
    }
    for (const row of records.logUnsettled()) if (!isOfObservations(row)) rewrite(stage, row, byEntity)
    for (const [rid, moves] of byEntity) settleEntity(stage, rid, moves)
    stage.published(() => {
      count = 0
      const { tenant } = ports
      ports.log.info('clock.settled', { tenant, rows, observations, corrected })
    })
  }

  function settleEntity(stage: Stage, rid: number, moves: Moves): void {
    for (const stream of live.entity(rid)?.streams ?? []) restamp(stage, stream, moves)
    for (const n of streams.unfolded(rid)) {
      const row = records.logAt(n)
      // A change of something else may tell a time that was observed before.
      if (row?.kind === 2) rewrite(stage, row, new Map([[rid, moves]]))
    }
    ports.documents().writeBack(stage, rid, (text) => moved(text, moves))
  }

  function restamp(stage: Stage, stream: LiveStream, moves: Moves): void {
    const movedTime = (time: number): number => moves.get(time) ?? time
    streams.touch(stage, stream)
    stream.nextTime = movedTime(stream.nextTime)
    stream.newestTime = movedTime(stream.newestTime)
    if (stream.nextTime > stream.newestTime) {
      stream.newestTime = stream.nextTime
      stream.newestValue = stream.nextValue
    }
    stage.published(() => {
      stream.time = stream.nextTime
      stream.tail.times = stream.tail.times.map(movedTime)
    })
  }

  function rewrite(stage: Stage, row: LogRow, byEntity: ReadonlyMap<number, Moves>): void {
    const { unset, ...change } = changeOf(row)
    const before = JSON.stringify(change)
    const text = moved(before, byEntity.get(row.rid!)!)
    if (unset !== undefined || text !== before) stage.write('log.rewrite', 2, encoder.encode(text), row.n)
  }

  return Object.freeze({
    attach,
    /** Whether times wait to be put right, or come in that will. */
    isHeld: (): boolean => count > 0 || clock.trust?.stretch() !== undefined,
    /** Whether a group should be made for it alone. */
    isDue: (): boolean => count > 0 && (clock.trust?.stretch() === undefined || isTooMuch()),
    count: () => count,
  })
}

export type Unsettled = ReturnType<typeof createUnsettled>

function movesOf(all: Map<number, Moves>, key: number): Moves {
  const known = all.get(key) ?? new Map<number, number>()
  all.set(key, known)
  return known
}

const changeOf = ({ body }: LogRow): UnsetChange => JSON.parse(Buffer.from(body).toString()) as UnsetChange

/** A JSON text with these times put right wherever they stand. */
function moved(text: string, moves: Moves): string {
  const texts = new Map([...moves].map(([from, to]) => [msToDateTime(from), msToDateTime(to)]))
  return text.replace(dateTimes, (whole, time: string) => {
    const to = texts.get(time)
    return to === undefined ? whole : `"${to}"`
  })
}
