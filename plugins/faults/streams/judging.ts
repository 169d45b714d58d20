/**
 * Judges samples by the detector of their stream, in order of arrival. A judgement becomes a write for each
 * change, and no write for a sample like the one before. Samples that are judged again after a restart give
 * equal writes, so nothing is written twice.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import { isFarAhead } from '#client/streams/far-future.ts'
import { type Estimate, isNewEstimate } from '#plugins/faults/detection/recovery.ts'
import type { Judgement, SilentMoment, StreamDetector } from '#plugins/faults/detection/stream-detector.ts'
import {
  begunFault,
  endedFault,
  estimateFragment,
  faultId,
  stateFragment,
  verdictFragment,
} from '#plugins/faults/entities/finding-entities.ts'
import type { FaultFinding, Match } from '#plugins/faults/rules/finding.ts'
import {
  type ArrivedSample,
  type FaultStream,
  type FindingWrite,
  isWatched,
  type OpenFault,
  type WatchState,
} from './fault-stream.ts'
import type { FindingQueue } from './finding-queue.ts'
import { stillMissed } from './missed-span.ts'
import type { StreamNeighbours } from './neighbourhood.ts'

export interface JudgingPorts {
  readonly neighbours: Pick<StreamNeighbours, 'estimate' | 'learn'>
  readonly queue: Pick<FindingQueue, 'add'>
  readonly log: Log
  /** Called after a stream was judged, so that it is saved. */
  readonly judged: (stream: FaultStream) => void
  /** Called after writes were added to its record. */
  readonly found: (stream: FaultStream) => void
  /** Called after the state of a stream changed. */
  readonly entered: (stream: FaultStream, state: WatchState) => void
  /** Called after the detector of a stream threw an error, and was dropped. */
  readonly failed: (stream: FaultStream) => void
}

export interface Judging {
  /** Judges a sample of a stream that has a detector, with the opinion of its model, if it has one. */
  take(stream: FaultStream, sample: ArrivedSample, opinion?: Match): void
  /** Judges the silence of a stream up to a time of the stream, ms. */
  silent(stream: FaultStream, time: number): void
  /** Writes the estimate for a missing sample of a silent stream, if it says something new. */
  missing(stream: FaultStream, time: number): void
  /** Ends what is open: the stream is stopped, or its detector begins anew and the stream is normal. */
  end(stream: FaultStream): void
}

/** Pauses count less with each arrival. */
const pauseDecay = 0.98
/** Late samples at the usual pace from which on they are judged; fewer are repeats of a device. */
const lateSamplesMin = 3

export function createJudging(ports: JudgingPorts): Judging {
  const { neighbours, queue, log, judged, found, entered, failed } = ports

  function add(stream: FaultStream, write: FindingWrite): void {
    queue.add(stream, write)
    found(stream)
  }

  /** A Fault is written from its begin to its end, or not at all. */
  function addFault(stream: FaultStream, { isDropped }: OpenFault, write: FindingWrite): void {
    if (isDropped !== true) add(stream, write)
  }

  /**
   * observedAt of a finding, ms: never before an earlier one of its stream, because the writer skips values
   * that are older than those of the broker. The time of a silence is later than the newest sample's; samples
   * that arrive late, or after a device set its clock back, are older.
   */
  function observedAt({ record }: FaultStream, time: number): number {
    record.writtenTo = Math.max(time, record.writtenTo ?? time)
    return record.writtenTo
  }

  function begin(stream: FaultStream, finding: FaultFinding, time: number): void {
    const { open } = stream.record
    let fault = open.find((one) => one.class === finding.class && one.begin === finding.begin)
    const isFirst = fault === undefined
    if (fault === undefined) {
      let at = finding.begin
      while (open.some(({ id }) => id === faultId(stream.id, at))) at++
      fault = {
        id: faultId(stream.id, at),
        class: finding.class,
        begin: finding.begin,
        kind: finding.kind,
        method: finding.method,
      }
      open.push(fault)
    } else open[open.indexOf(fault)] = { ...fault, kind: finding.kind, method: finding.method }
    const { id } = fault
    const at = observedAt(stream, time)
    const entity = begunFault(finding, { id, stream: stream.id, sensor: stream.sensorId, time: at })
    addFault(stream, fault, { operation: 'upsert', entity, ...(isFirst && { isFirst }) })
    log.info('faults.began', { stream: stream.id, class: finding.class, kind: finding.kind, fault: id })
  }

  function finish(stream: FaultStream, finding: FaultFinding, time: number): void {
    const { open } = stream.record
    const fault = open.find((one) => one.class === finding.class && one.begin === finding.begin)
    if (fault === undefined) return
    open.splice(open.indexOf(fault), 1)
    noteSpan(stream, fault, finding.end ?? time)
    addFault(stream, fault, { operation: 'upsert', entity: endedFault(finding, fault.id, time) })
    log.info('faults.ended', { stream: stream.id, class: finding.class, fault: fault.id })
  }

  function noteSpan({ record }: FaultStream, { kind, begin }: OpenFault, end: number): void {
    if (kind !== 'definite') return
    record.faulty.push({ begin, end })
    if (record.faulty.length > limits.faultsSpansMax.value) record.faulty.shift()
  }

  /** Adds the writes of a judgement about a time of the stream. */
  function note(stream: FaultStream, judgement: Judgement, time: number): void {
    const { record } = stream
    for (const finding of judgement.begun) begin(stream, finding, time)
    for (const finding of judgement.ended) finish(stream, finding, time)
    noteState(stream, judgement.state, time)
    const { verdict, estimate, begun } = judgement
    const observation = record.last?.observation
    if (observation !== undefined && verdict !== record.verdict) {
      record.verdict = verdict
      if (estimate === undefined) delete record.estimate
      else record.estimate = estimate
      const method = verdict === 'ok' ? undefined : (begun.at(-1)?.method ?? record.open.at(-1)?.method)
      const entity = verdictFragment(observation, { verdict, method, estimate }, observedAt(stream, time))
      add(stream, { operation: 'update', entity })
    } else if (verdict === 'faulty' && estimate !== undefined) noteEstimate(stream, estimate, time)
    judged(stream)
  }

  function noteEstimate(stream: FaultStream, estimate: Estimate, time: number): void {
    const { record } = stream
    if (record.last === undefined) return
    record.estimate = estimate
    const entity = estimateFragment(record.last.observation, estimate, observedAt(stream, time))
    add(stream, { operation: 'update', entity })
  }

  function noteState(stream: FaultStream, state: WatchState, time: number): void {
    if (state === stream.record.state) return
    stream.record.state = state
    add(stream, { operation: 'update', entity: stateFragment(stream, state, observedAt(stream, time)) })
    entered(stream, state)
  }

  /** Runs a detector; one that throws is dropped. */
  function run<T>(stream: FaultStream, work: (detector: StreamDetector) => T): T | undefined {
    try {
      return work(stream.detector!)
    } catch (error) {
      log.error('faults.detector-failed', { stream: stream.id, error })
      stream.detector = undefined
      failed(stream)
      return undefined
    }
  }

  function judge(
    stream: FaultStream,
    time: number,
    work: (detector: StreamDetector) => Judgement | undefined,
  ): void {
    const judgement = run(stream, work)
    if (judgement !== undefined) note(stream, judgement, time)
  }

  function silenceOf(stream: FaultStream, time: number): SilentMoment {
    const neighbour = neighbours.estimate(stream, time)
    return { time, downMs: stream.record.downMs, ...(neighbour && { neighbour }) }
  }

  /** Whether a sample is new: repeated ones, a few late ones, and those of a wrong clock are not judged. */
  function isNew({ record, detector }: FaultStream, { time, value, committedAt }: ArrivedSample): boolean {
    const { last, learnedUntil = Number.NEGATIVE_INFINITY } = record
    if (time <= learnedUntil) return false
    if (isFarAhead(time, committedAt)) return false
    if (last === undefined || time > last.time) {
      record.lateSamples = 0
      delete record.lateAt
      return true
    }
    if (time === last.time && value === last.value) return false
    // A device that sends what it stored, or an import, is faster than a device whose clock was set back.
    const interval = detector?.intervalMs() ?? 1
    const isAtPace = committedAt - (record.lateAt ?? last.committedAt) >= interval / 2
    record.lateAt = committedAt
    record.lateSamples = isAtPace ? record.lateSamples + 1 : 0
    return record.lateSamples > lateSamplesMin
  }

  return Object.freeze({
    take(stream, sample, opinion) {
      const { record } = stream
      if (!isNew(stream, sample)) return
      const { downMs } = record
      const pause = record.last === undefined ? 0 : sample.committedAt - record.last.committedAt - downMs
      record.longestPauseMs = Math.max(pause, record.longestPauseMs * pauseDecay)
      record.downMs = stillMissed(record, sample)
      record.equalValues = record.last?.value === sample.value ? record.equalValues + 1 : 1
      record.last = sample
      const { time, value } = sample
      const neighbour = neighbours.estimate(stream, time)
      judge(stream, time, (detector) =>
        detector.take({ time, value, downMs, ...(neighbour && { neighbour }), ...(opinion && { opinion }) }),
      )
      if (record.state === 'normal') neighbours.learn(stream)
    },
    silent(stream, time) {
      judge(stream, time, (detector) => detector.advance(silenceOf(stream, time)))
    },
    missing(stream, time) {
      const estimate = run(stream, (detector) => detector.missing(silenceOf(stream, time)))
      if (estimate === undefined || !isNewEstimate(estimate, stream.record.estimate)) return
      noteEstimate(stream, estimate, time)
      judged(stream)
    },
    end(stream) {
      const { record } = stream
      const time = record.last?.time ?? record.learnedUntil
      if (time === undefined) return
      for (const fault of record.open) {
        const { id, class: of } = fault
        noteSpan(stream, fault, time)
        addFault(stream, fault, { operation: 'upsert', entity: endedFault({ end: time }, id, time) })
        log.info('faults.ended', { stream: stream.id, class: of, fault: id })
      }
      record.open = []
      if (!isWatched(stream)) noteState(stream, 'stopped', time)
      else if (record.state !== undefined) noteState(stream, 'normal', time)
    },
  } satisfies Judging)
}
