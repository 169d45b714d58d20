/**
 * The latest values of the sources of all virtual sensors, and as many earlier ones as a prediction looks
 * back for. Streams in state fault give no values. Pure.
 */
import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { isFarAhead } from '#client/streams/far-future.ts'
import type { SourceCandidate } from '#plugins/virtual-sensors/candidates/sensor-search.ts'
import type { LatestReading, SourceReading } from '#plugins/virtual-sensors/families/prediction.ts'

export interface SourceReadings {
  /** Values of these are kept from now on, those of the last `lookbackMs`. */
  add(sources: readonly SourceCandidate[], lookbackMs: number): void
  /** To be called once for each `add`. */
  remove(sources: readonly SourceCandidate[]): void
  /** Ignored if the observation entity is that of no source, or the time is far ahead. */
  observe(observation: string, reading: SourceReading): void
  /** Forgets the values of a deleted observation entity. */
  forget(observation: string): void
  setFaulty(stream: string, isFaulty: boolean): void
  /** Undefined without a value, or while the stream is faulty. */
  latest(source: SourceCandidate): LatestReading | undefined
  /** Whether an entity is the observation entity or the stream of a source. */
  readonly has: (id: string) => boolean
}

interface Series {
  users: number
  lookbackMs: number
  /** In order of time. */
  readonly readings: SourceReading[]
}

export function createSourceReadings({ now }: Pick<Clock, 'now'>): SourceReadings {
  const all = new Map<string, Series>()
  /** Streams of sources. */
  const streams = new Map<string, { users: number; isFaulty: boolean }>()
  return Object.freeze({
    add(sources, lookbackMs) {
      for (const { observation, stream } of sources) {
        const followed = streams.get(stream) ?? { users: 0, isFaulty: false }
        followed.users++
        streams.set(stream, followed)
        const series = all.get(observation) ?? { users: 0, lookbackMs, readings: [] }
        series.users++
        series.lookbackMs = Math.max(series.lookbackMs, lookbackMs)
        all.set(observation, series)
      }
    },
    remove(sources) {
      for (const { observation, stream } of sources) {
        for (const [users, id] of [[all, observation] as const, [streams, stream] as const]) {
          const one = users.get(id)
          if (one !== undefined && --one.users === 0) users.delete(id)
        }
      }
    },
    observe(observation, reading) {
      const series = all.get(observation)
      if (series !== undefined && !isFarAhead(reading.time, now())) insert(series, reading)
    },
    forget(observation) {
      const series = all.get(observation)
      if (series !== undefined) series.readings.length = 0
    },
    setFaulty(stream, isFaulty) {
      const followed = streams.get(stream)
      if (followed !== undefined) followed.isFaulty = isFaulty
    },
    latest({ observation, stream }) {
      const readings = streams.get(stream)?.isFaulty === true ? [] : (all.get(observation)?.readings ?? [])
      const last = readings.at(-1)
      return last && { ...last, earlier: readings.slice(0, -1) }
    },
    has: (id) => all.has(id) || streams.has(id),
  } satisfies SourceReadings)
}

/** Keeps at most `virtualReadingsMax` readings, evenly over the time that predictions look back. */
function insert({ readings, lookbackMs }: Series, reading: SourceReading): void {
  let at = readings.length
  while (at > 0 && readings[at - 1]!.time >= reading.time) at--
  if (readings[at]?.time === reading.time) readings[at] = reading
  else readings.splice(at, 0, reading)
  // A reading between two that are closer together than a step is not needed; half a step remains between
  // neighbours.
  const stepMs = (2 * lookbackMs) / (limits.virtualReadingsMax.value - 4)
  for (const i of [at + 1, at, at - 1])
    if (i > 0 && i < readings.length - 1 && readings[i + 1]!.time - readings[i - 1]!.time < stepMs)
      readings.splice(i, 1)
  const oldest = readings.at(-1)!.time - lookbackMs
  while (readings.length > 1 && readings[1]!.time <= oldest) readings.shift()
  while (readings.length > limits.virtualReadingsMax.value) readings.shift()
}
