/**
 * The observations of one stream that were committed in a span of time, from chunks and the tail, in order of
 * observedAt. A repeated observation counts when it was first committed, as in chunks. They are stored in
 * columns and become attribute instances one by one, so a part of many thousands needs little memory. Reading
 * yields; if the stream was folded or packed again meanwhile, it is read again.
 */
import type { YieldIfDue } from '#base/load/yielding.ts'
import type { LiveState } from '#broker/state/live-state.ts'
import type { Tail } from '#broker/state/unwritten.ts'
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { stableJson } from '#ngsi-ld/values/json.ts'
import { decodeChunk } from '#store/chunks/chunk-codec.ts'
import type { ChunkRow } from '#store/history/history-rows.ts'
import type { HistorySpans } from '#store/history/history-spans.ts'

/** Observations of one stream, in order of time. */
export interface CommittedPart {
  readonly s: number
  readonly length: number
  /** observedAt of one, ms. */
  timeAt(i: number): number
  valueAt(i: number): Json
  instanceAt(i: number): AttributeInstance
}

export interface CommittedPartPorts {
  readonly spans: HistorySpans
  readonly live: LiveState
  /** Log number up to which a stream is folded. */
  readonly foldedOf: (s: number) => number
}

/** Commit times from <= ms < to. */
interface Span {
  readonly from: number
  readonly to: number
}

/** Chunks that may contain observations of the span, listed when the stream was folded up to `folded`. */
interface Known {
  readonly keys: readonly bigint[]
  readonly folded: number
}

interface CommittedSpan {
  readonly s: number
  readonly span: Span
  /** Commit time (ms) up to which observations were erased. */
  readonly erasedUntil: number
  readonly known: Known
}

/** Chunks of one stream are disjoint in time, and their keys begin with it. */
const inOrderOfTime = (keys: readonly bigint[]): readonly bigint[] =>
  keys.toSorted((a, b) => (a < b ? -1 : Number(a > b)))

/** Number of reads that yield; the next one does not, so that nothing can change meanwhile. */
const triesMax = 3

export async function readCommittedPart(
  { s, span, erasedUntil, known }: CommittedSpan,
  ports: CommittedPartPorts,
  yieldIfDue: YieldIfDue,
): Promise<CommittedPart> {
  const { spans, live, foldedOf } = ports
  const now = (): Known => ({ keys: spans.touched(span.from, span.to).get(s) ?? [], folded: foldedOf(s) })
  let { keys, folded } = known.folded === foldedOf(s) ? known : now()
  for (let tries = 0; ; tries++) {
    const columns = createColumns(span, erasedUntil)
    columns.addTail(live.stream(s)?.tail)
    let isWhole = true
    for (const key of inOrderOfTime(keys)) {
      if (tries < triesMax) await yieldIfDue()
      const chunk = spans.chunk(key)
      if (chunk === undefined) isWhole = false
      else columns.addChunk(chunk)
    }
    if ((isWhole && foldedOf(s) === folded) || tries === triesMax) return columns.part(s)
    ;({ keys, folded } = now())
  }
}

function createColumns({ from, to }: Span, erasedUntil: number) {
  const times: number[] = []
  const values: Json[] = []
  const shapeOf: number[] = []
  const shapes: string[] = []
  const numbers = new Map<string, number>()
  /** Rows of earlier spans; they only show which observations of this one are repeats. */
  const earlier = new Set<number>()
  let isAscending = true
  const numberOf = (shape: string): number => {
    const known = numbers.get(shape) ?? shapes.push(shape) - 1
    numbers.set(shape, known)
    return known
  }
  const add = (time: number, value: Json, shape: number): void => {
    if (times.length > 0 && time <= times[times.length - 1]!) isAscending = false
    times.push(time)
    values.push(value)
    shapeOf.push(shape)
  }
  const isWithin = (modified: number): boolean => modified >= from && modified < to && modified > erasedUntil
  /** The tail's observations; most are newer than those in chunks. */
  const unfolded: { readonly row: Readonly<Parameters<typeof add>>; readonly isWithin: boolean }[] = []
  return {
    addChunk(row: ChunkRow): void {
      const chunk = decodeChunk(row)
      const known = chunk.shapes.map(numberOf)
      for (let i = 0; i < chunk.times.length; i++)
        if (isWithin(chunk.modified[i]!))
          add(chunk.times[i]!, chunk.values[i]!, known[chunk.shapeOf?.[i] ?? 0]!)
    },
    addTail(tail: Tail | undefined): void {
      for (let i = 0; tail !== undefined && i < tail.committed; i++) {
        const modified = tail.modified[i]!
        if (modified <= erasedUntil || modified >= to) continue
        const { shape } = tail.shapes.findLast((one) => one.from <= i)!
        const row = [tail.times[i]!, tail.values[i]!, numberOf(shape)] as const
        unfolded.push({ row, isWithin: isWithin(modified) })
      }
    },
    part(s: number): CommittedPart {
      for (const { row, isWithin } of unfolded) {
        if (!isWithin) earlier.add(times.length)
        add(...row)
      }
      const order = isAscending && earlier.size === 0 ? undefined : firstOnes({ times, values, earlier })
      const at = (i: number): number => order?.[i] ?? i
      const make = createInstances(shapes)
      return {
        s,
        length: order?.length ?? times.length,
        timeAt: (i) => times[at(i)]!,
        valueAt: (i) => values[at(i)]!,
        instanceAt: (i) => make(shapeOf[at(i)]!, values[at(i)]!, times[at(i)]!),
      }
    },
  }
}

/** Rows by time, without those of earlier spans and without repeats of an earlier row. */
function firstOnes(rows: {
  readonly times: readonly number[]
  readonly values: readonly Json[]
  readonly earlier: ReadonlySet<number>
}): readonly number[] {
  const { times, values, earlier } = rows
  const sorted = times.map((_, i) => i).sort((a, b) => times[a]! - times[b]!)
  const valuesOfTime = new Set<string>()
  return sorted.filter((row, i) => {
    const isFirstOfTime = times[row] !== times[sorted[i - 1]!]
    if (isFirstOfTime) valuesOfTime.clear()
    if (isFirstOfTime && times[row] !== times[sorted[i + 1]!]) return !earlier.has(row)
    const value = stableJson(values[row]!)
    const isRepeat = valuesOfTime.has(value)
    valuesOfTime.add(value)
    return !isRepeat && !earlier.has(row)
  })
}

/** Creates instances from shapes, each of which is parsed once. */
function createInstances(
  shapes: readonly string[],
): (shape: number, value: Json, time: number) => AttributeInstance {
  const known: AttributeInstance[] = []
  return (shape, value, time) => {
    known[shape] ??= JSON.parse(shapes[shape]!) as AttributeInstance
    const { type, ...members } = known[shape]
    return { type, value, observedAt: msToDateTime(time), ...members }
  }
}
