/**
 * Finds observations that several streams of one attribute instance contain, so that aggregates count each
 * once. An attribute or entity that was deleted and re-created has a stream for each of its lives, and a
 * device may send observations again. Only overlapping time spans of the streams are read.
 */
import { limits } from '#base/limits/limits.ts'
import { identityOf } from '#broker/state/streams.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { decodeChunk } from '#store/chunks/chunk-codec.ts'
import type { ChunkSummary } from '#store/history/history-rows.ts'
import { isSameChunk } from './decoded-chunks.ts'
import { observationsOf, type RecordedObservations } from './evolution-sources.ts'
import { type HistorySteps, isCounted, type StreamPart, type StreamSumPorts } from './stream-sums.ts'

interface Observation {
  readonly time: number
  readonly modified: number
  readonly value: Parameters<typeof identityOf>[1]
}

/** A chunk of a stream, or its tail. */
interface Block {
  readonly first: number
  readonly last: number
  /** Undefined if the chunk was removed. */
  readonly read: () => readonly Observation[] | undefined
}

interface Repeats {
  readonly times: number[]
  readonly identities: Set<string>
}

/** The parts of streams, each without observations that an earlier one contains. */
export function* withoutRepeats(
  ports: StreamSumPorts,
  parts: readonly StreamPart[],
): HistorySteps<StreamPart[]> {
  const kept: StreamPart[] = []
  for (const group of Map.groupBy(parts, ({ name, dataset }) => `${name} ${dataset}`).values())
    for (const [i, part] of group.entries()) {
      const repeats: Repeats = { times: [], identities: new Set() }
      for (const earlier of group.slice(0, i)) yield* addRepeats(ports, part, earlier, repeats)
      kept.push(repeats.times.length === 0 ? part : { ...part, recorded: joined(part.recorded, repeats) })
    }
  return kept
}

function* addRepeats(
  ports: StreamSumPorts,
  part: StreamPart,
  earlier: StreamPart,
  { times, identities }: Repeats,
): HistorySteps<void> {
  const others = blocksOf(ports, earlier)
  for (const block of blocksOf(ports, part)) {
    const shared = others.filter(({ first, last }) => first <= block.last && last >= block.first)
    if (shared.length === 0) continue
    const own = block.read()
    yield own !== undefined
    const known = new Map(own?.map((one) => [identityOf(one.time, one.value), one.time]))
    for (const other of shared) {
      const held = other.read()
      for (const one of held ?? []) {
        const identity = identityOf(one.time, one.value)
        if (!known.has(identity) || identities.has(identity) || !isCounted(earlier, one)) continue
        if (identities.add(identity).size > limits.temporalFilterInstancesMax.value)
          throw tooComplex(
            `${part.name} has too many values that were repeated after it was re-created; request a shorter time`,
          )
        times.push(one.time)
      }
      yield held !== undefined
    }
  }
}

function blocksOf(ports: StreamSumPorts, { s, chunks, tail }: StreamPart): Block[] {
  const blocks = chunks.map((chunk) => ({
    first: chunk.t0,
    last: chunk.t1,
    read: () => chunkOf(ports, s, chunk),
  }))
  const [first, last] = [tail[0], tail.at(-1)]
  if (first === undefined || last === undefined) return blocks
  return [...blocks, { first: first.time, last: last.time, read: () => tail }]
}

function chunkOf({ history }: StreamSumPorts, s: number, chunk: ChunkSummary): Observation[] | undefined {
  const row = history.chunkAt(s, chunk.t0)
  if (row === undefined || !isSameChunk(row, chunk)) return undefined
  const { times, modified, values } = decodeChunk(row)
  return Array.from(times, (time, i) => ({ time, modified: modified[i]!, value: values[i]! }))
}

function joined(recorded: RecordedObservations, { times, identities }: Repeats): RecordedObservations {
  const repeated = observationsOf(
    times.toSorted((a, b) => a - b),
    identities,
  )
  return {
    has: (time, value) => recorded.has(time, value) || repeated.has(time, value),
    timesWithin(first, last) {
      const [own, others] = [recorded.timesWithin(first, last), repeated.timesWithin(first, last)]
      return [...own, ...others].sort((a, b) => a - b)
    },
  }
}
