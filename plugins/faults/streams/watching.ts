/**
 * Gives each watched stream its detector: a new one learns from the history of the stream, one stream at a
 * time and in slices, while arriving samples wait. A thread fits its models. Detectors begin anew when
 * metadata or a request demand it.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Log } from '#base/register/log.ts'
import { numberOf } from '#client/streams/stream-entities.ts'
import type { Json, PastValue } from '#contract'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import type { ApproachChooser } from '#plugins/faults/anomalies/approach-chooser.ts'
import { defaultDetectionSettings } from '#plugins/faults/detection/detection-settings.ts'
import {
  createStreamDetector,
  type DetectionProfile,
  savedVersion,
} from '#plugins/faults/detection/stream-detector.ts'
import { type ArrivedSample, type FaultStream, isWatched } from './fault-stream.ts'
import type { Judging } from './judging.ts'
import type { ModelOpinions } from './model-opinions.ts'
import type { WatchedMetadata } from './watched-metadata.ts'

export interface WatchingPorts {
  readonly judging: Pick<Judging, 'end'>
  readonly opinions: ModelOpinions
  readonly chooser: Pick<ApproachChooser, 'choose' | 'settled'>
  /** Past values of an observation entity, the newest slice first. */
  readonly history: (observationId: string) => AsyncIterable<readonly PastValue[]>
  /** Called after a detector was made or dropped, so that the stream is saved. */
  readonly changed: (stream: FaultStream) => void
  readonly log: Log
  readonly signal: AbortSignal
}

/** Progress of a stream whose detector learns, or why it could not. */
export interface Training {
  readonly stream: FaultStream
  /** 0 to 1. */
  readonly progress: number
  readonly error: string | undefined
}

export interface Watching {
  /** Makes the detector of a stream: from its saved state, or from its history. */
  begin(stream: FaultStream, saved?: JsonObject): void
  /** Judges a value of a stream, now or when its detector has learned. */
  observe(stream: FaultStream, observation: string, arrival: ArrivedValue): void
  /** Called after the metadata of a stream changed. */
  described(stream: FaultStream, before: WatchedMetadata): void
  /** Stops judging. Returns false if it was stopped before. */
  stop(stream: FaultStream): boolean
  /** Begins anew with a detector that learns from all history. */
  restart(stream: FaultStream): void
  delete(stream: FaultStream): void
  readonly training: () => readonly Training[]
  trainingOf(stream: FaultStream): Training | undefined
  close(): Promise<void>
}

export interface ArrivedValue {
  readonly time: number
  readonly value: Json
  /** Commit time, ms. */
  readonly committedAt: number
}

export function createWatching({
  judging,
  opinions,
  chooser,
  history,
  changed,
  log,
  signal,
}: WatchingPorts): Watching {
  /** Streams whose detectors learn or will; those that failed stay until they begin anew. */
  const trainings = new Map<FaultStream, { progress: number; error: string | undefined; isDone: boolean }>()
  /** Restored detectors, whose anomaly detectors take the history again: they are not saved. */
  const recalls = new Set<FaultStream>()
  let working: Promise<void> | undefined

  const profile = (metadata: WatchedMetadata): DetectionProfile => ({
    ...profileOf(metadata),
    choose: chooser.choose,
  })

  function enqueue(stream: FaultStream): void {
    stream.detector = undefined
    trainings.set(stream, { progress: 0, error: undefined, isDone: false })
    wake()
  }

  function wake(): void {
    working ??= run().finally(() => {
      working = undefined
    })
  }

  /** Makes a new detector in place of one that cannot go on: its findings end. */
  function beginAnew(stream: FaultStream): void {
    judging.end(stream)
    enqueue(stream)
  }

  /** Restores a detector. @throws what a state of another shape causes */
  function restore(stream: FaultStream, saved: JsonObject): void {
    stream.detector = createStreamDetector(profile(stream.metadata), saved)
    recalls.add(stream)
    wake()
  }

  async function run(): Promise<void> {
    // Streams of one batch of changes are all known before the first one learns.
    await nextTurn()
    while (!signal.aborted) {
      const [next] = trainings.entries().filter(([, { isDone }]) => !isDone)
      const [restored] = recalls
      if (next !== undefined) await train(...next)
      else if (restored !== undefined) await recall(restored)
      else return
    }
  }

  async function recall(stream: FaultStream): Promise<void> {
    recalls.delete(stream)
    const { detector, record } = stream
    if (detector === undefined) return
    const begunAt = performance.now()
    try {
      const past = await pastOf(stream)
      const { last } = record
      const judged = last === undefined ? [] : healthy(stream, past).filter(({ time }) => time <= last.time)
      const recalled = detector.recall()
      for (const slice of slicesOf(judged.slice(-limits.faultsRecalledMax.value))) {
        recalled.take(slice)
        await nextTurn()
        await chooser.settled()
      }
      if (judged.length > 0) recalled.end()
    } catch (error) {
      log.debug('plugin.failed', { plugin: 'faults', during: `the history of ${stream.id}`, error })
    }
    // All streams of the gateway do so after its start.
    const rest = (performance.now() - begunAt) * restPerWork
    await delay(rest, undefined, { signal }).catch(() => undefined)
  }

  async function train(
    stream: FaultStream,
    job: { progress: number; error: string | undefined; isDone: boolean },
  ): Promise<void> {
    const past = await pastOf(stream).catch((error: unknown) => {
      job.error = (error as Error).message
      return []
    })
    const until = stream.buffered[0]?.time ?? Number.POSITIVE_INFINITY
    const learned = healthy(stream, past).filter(({ time }) => time < until)
    const detector = createStreamDetector(profile(stream.metadata))
    let done = 0
    for (const slice of slicesOf(learned)) {
      detector.learn(slice)
      done += slice.length
      job.progress = done / learned.length
      await nextTurn()
      await chooser.settled()
    }
    job.isDone = true
    // It may have begun anew, or been stopped or deleted meanwhile.
    if (trainings.get(stream) !== job || signal.aborted) return
    if (job.error === undefined) trainings.delete(stream)
    const newest = past.findLast(({ time }) => time < until)
    stream.detector = detector
    if (newest !== undefined) {
      stream.record.learnedUntil = newest.time
      if (stream.record.last === undefined || stream.record.last.time < newest.time)
        stream.record.last = newest
    }
    opinions.learn(stream, learned)
    for (const sample of stream.buffered.splice(0)) opinions.take(stream, sample)
    changed(stream)
  }

  /** The newest values of a stream, oldest first. */
  async function pastOf({ observations }: FaultStream): Promise<ArrivedSample[]> {
    const past: ArrivedSample[] = []
    for (const observation of observations)
      for await (const slice of history(observation))
        for (const { time, value, committed } of slice) {
          const number = numberOf(value)
          if (number !== undefined)
            past.push({ time, value: number, observation, committedAt: committed ?? time })
        }
    return past.sort((a, b) => a.time - b.time)
  }

  /** Ends judging without a detector: what is open ends. */
  function drop(stream: FaultStream): void {
    trainings.delete(stream)
    stream.detector = undefined
    delete stream.record.model
    stream.buffered = []
    judging.end(stream)
    changed(stream)
  }

  return Object.freeze({
    begin(stream, saved) {
      if (!isWatched(stream)) return
      if (saved?.['version'] !== savedVersion) return beginAnew(stream)
      try {
        restore(stream, saved)
        opinions.resume(stream)
      } catch (error) {
        log.error('faults.detector-failed', { stream: stream.id, error })
        beginAnew(stream)
      }
    },
    observe(stream, observation, { time, value, committedAt }) {
      const number = numberOf(value)
      if (number === undefined || !isWatched(stream)) return
      const sample = { time, value: number, observation, committedAt }
      if (stream.detector !== undefined) return opinions.take(stream, sample)
      stream.buffered.push(sample)
      if (stream.buffered.length > limits.faultsBufferedMax.value) stream.buffered.shift()
    },
    described(stream, before) {
      const { metadata, record, detector } = stream
      if (record.isStopped) return
      if (metadata.isExempt) {
        if (!before.isExempt) drop(stream)
      } else if (before.isExempt) beginAnew(stream)
      else if (detector !== undefined && isOther(metadata, before)) restore(stream, detector.saved())
    },
    stop(stream) {
      if (stream.record.isStopped) return false
      stream.record.isStopped = true
      drop(stream)
      return true
    },
    restart(stream) {
      stream.record.isStopped = false
      drop(stream)
      if (isWatched(stream)) enqueue(stream)
    },
    delete(stream) {
      trainings.delete(stream)
      recalls.delete(stream)
    },
    training: () => [...trainings].map(([stream, { progress, error }]) => ({ stream, progress, error })),
    trainingOf(stream) {
      const job = trainings.get(stream)
      return job && { stream, progress: job.progress, error: job.error }
    },
    async close() {
      await working
    },
  } satisfies Watching)
}

/** Time without recalls for each ms of one. */
const restPerWork = 4

/** Samples without those of definite faults. */
const healthy = ({ record: { faulty } }: FaultStream, samples: readonly ArrivedSample[]) =>
  samples.filter(({ time }) => !faulty.some(({ begin, end }) => begin <= time && time <= end))

/** Samples that are learned without yielding. */
function* slicesOf(samples: readonly ArrivedSample[]): Generator<ArrivedSample[]> {
  const { value: size } = limits.faultsLearnSlice
  for (let at = 0; at < samples.length; at += size) yield samples.slice(at, at + size)
}

/** The metadata that a detector depends on. */
const numbersOf = ({ intervalMs, periodMs, min, max, maxRate }: WatchedMetadata) => ({
  intervalMs,
  periodMs,
  min,
  max,
  maxRate,
})

function profileOf(metadata: WatchedMetadata): DetectionProfile {
  const given = Object.entries(numbersOf(metadata)).filter(([, one]) => one !== undefined)
  return {
    ...(Object.fromEntries(given) as Omit<DetectionProfile, 'settings'>),
    settings: defaultDetectionSettings,
  }
}

const isOther = (a: WatchedMetadata, b: WatchedMetadata): boolean =>
  JSON.stringify(numbersOf(a)) !== JSON.stringify(numbersOf(b))
