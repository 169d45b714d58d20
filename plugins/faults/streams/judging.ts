/**
 * Judges samples by the detector of their stream, in order of arrival. A judgement becomes a write for each
 * change, and no write for a sample like the one before. Samples that are judged again after a restart give
 * equal writes, so nothing is written twice.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Judgement, StreamDetector } from '#plugins/faults/detection/stream-detector.ts'
import {
  begunFault,
  endedFault,
  estimateFragment,
  faultId,
  stateFragment,
  verdictFragment,
} from '#plugins/faults/entities/finding-entities.ts'
import type { FaultFinding, Match } from '#plugins/faults/rules/finding.ts'
import type { ArrivedSample, FaultStream, FindingWrite, OpenFault, WatchState } from './fault-stream.ts'
import type { StreamNeighbours } from './neighbourhood.ts'

export interface JudgingPorts {
  readonly neighbours: Pick<StreamNeighbours, 'estimate' | 'learn'>
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
  /** Ends what is open, since the stream is no longer watched or its detector begins anew. */
  end(stream: FaultStream): void
  /** Findings that were dropped because too many waited. */
  readonly dropped: () => number
}

/** Pauses count less with each arrival. */
const pauseDecay = 0.98
/** Late samples at the usual pace from which on they are judged; fewer are repeats of a device. */
const lateSamplesMin = 3

export function createJudging({ neighbours, log, judged, found, entered, failed }: JudgingPorts): Judging {
  let dropped = 0

  function add(stream: FaultStream, write: FindingWrite): void {
    const { writes } = stream.record
    writes.push(write)
    if (writes.length > limits.faultsWritesMax.value) {
      writes.shift()
      dropped++
    }
  }

  function begin(stream: FaultStream, finding: FaultFinding, time: number): void {
    const { open } = stream.record
    let fault = open.find((one) => one.class === finding.class && one.begin === finding.begin)
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
    const entity = begunFault(finding, { id, stream: stream.id, sensor: stream.sensorId, time })
    add(stream, { operation: 'upsert', entity })
    log.info('faults.began', { stream: stream.id, class: finding.class, kind: finding.kind, fault: id })
  }

  function finish(stream: FaultStream, finding: FaultFinding, time: number): void {
    const { open } = stream.record
    const fault = open.find((one) => one.class === finding.class && one.begin === finding.begin)
    if (fault === undefined) return
    open.splice(open.indexOf(fault), 1)
    noteSpan(stream, fault, finding.end ?? time)
    add(stream, { operation: 'upsert', entity: endedFault(finding, fault.id, time) })
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
    const before = record.writes.length + dropped
    for (const finding of judgement.begun) begin(stream, finding, time)
    for (const finding of judgement.ended) finish(stream, finding, time)
    noteState(stream, judgement.state, time)
    const { verdict, estimate, begun } = judgement
    const observation = record.last?.observation
    if (observation !== undefined && verdict !== record.verdict) {
      record.verdict = verdict
      const method = verdict === 'ok' ? undefined : (begun.at(-1)?.method ?? record.open.at(-1)?.method)
      const entity = verdictFragment(observation, { verdict, method, estimate }, time)
      add(stream, { operation: 'update', entity })
    } else if (observation !== undefined && verdict === 'faulty' && estimate !== undefined)
      add(stream, { operation: 'update', entity: estimateFragment(observation, estimate, time) })
    judged(stream)
    if (record.writes.length + dropped !== before) found(stream)
  }

  function noteState(stream: FaultStream, state: WatchState, time: number): void {
    if (state === stream.record.state) return
    stream.record.state = state
    add(stream, { operation: 'update', entity: stateFragment(stream, state, time) })
    entered(stream, state)
  }

  /** Runs a detector; one that throws is dropped. */
  function judge(
    stream: FaultStream,
    time: number,
    work: (detector: StreamDetector) => Judgement | undefined,
  ): void {
    try {
      const judgement = work(stream.detector!)
      if (judgement !== undefined) note(stream, judgement, time)
    } catch (error) {
      log.error('faults.detector-failed', { stream: stream.id, error })
      stream.detector = undefined
      failed(stream)
    }
  }

  /** Whether a sample is new: repeated ones and a few late ones are not judged. */
  function isNew({ record, metadata }: FaultStream, { time, value, committedAt }: ArrivedSample): boolean {
    const { last, learnedUntil = Number.NEGATIVE_INFINITY } = record
    if (time <= learnedUntil) return false
    if (last === undefined || time > last.time) {
      record.lateSamples = 0
      return true
    }
    if (time === last.time && value === last.value) return false
    // A device that sends what it stored is faster than one whose clock was set back.
    const isAtPace = committedAt - last.committedAt >= (metadata.intervalMs ?? 0) / 2
    record.lateSamples = isAtPace ? record.lateSamples + 1 : 0
    return record.lateSamples > lateSamplesMin
  }

  return Object.freeze({
    take(stream, sample, opinion) {
      const { record } = stream
      if (!isNew(stream, sample)) return
      const pause = record.last === undefined ? 0 : sample.committedAt - record.last.committedAt
      record.longestPauseMs = Math.max(pause, record.longestPauseMs * pauseDecay)
      record.equalValues = record.last?.value === sample.value ? record.equalValues + 1 : 1
      record.last = sample
      const { time, value } = sample
      const neighbour = neighbours.estimate(stream, time)
      judge(stream, time, (detector) =>
        detector.take({ time, value, ...(neighbour && { neighbour }), ...(opinion && { opinion }) }),
      )
      if (record.state === 'normal') neighbours.learn(stream)
    },
    silent(stream, time) {
      judge(stream, time, (detector) => detector.advance(time))
    },
    end(stream) {
      const { record } = stream
      const time = record.last?.time ?? record.learnedUntil
      if (time === undefined) return
      for (const fault of record.open) {
        const { id, class: of } = fault
        noteSpan(stream, fault, time)
        add(stream, {
          operation: 'upsert',
          entity: endedFault({ end: time }, id, time),
        })
        log.info('faults.ended', { stream: stream.id, class: of, fault: id })
      }
      record.open = []
      if (record.isStopped) noteState(stream, 'stopped', time)
      found(stream)
    },
    dropped: () => dropped,
  } satisfies Judging)
}
