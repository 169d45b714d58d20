/** A watched stream: what describes it, its detector, and what is on disk of it. */
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import type { Estimate } from '#plugins/faults/detection/recovery.ts'
import type { StreamState } from '#plugins/faults/detection/state-machine.ts'
import type { StreamDetector } from '#plugins/faults/detection/stream-detector.ts'
import type { ModelRuleState } from '#plugins/faults/models/model-rule.ts'
import type { WindowState } from '#plugins/faults/models/model-window.ts'
import type { FaultFinding } from '#plugins/faults/rules/finding.ts'
import type { WatchedMetadata } from './watched-metadata.ts'

export interface FaultStream {
  readonly id: string
  /** Types of the entity, as its state must name them. */
  types: readonly string[]
  sensorId: string | undefined
  /** Entities that describe it: Sensor, ObservableProperty, Platform, QoI. */
  sources: readonly string[]
  /** Whether its QoI says that its values are not plausible: then it is no evidence about its neighbours. */
  isDoubtful: boolean
  /** Its observation entities; verdicts stand on the one that was observed. */
  readonly observations: Set<string>
  metadata: WatchedMetadata
  /** Undefined while it learns from history, and while the stream is not watched. */
  detector: StreamDetector | undefined
  /** Samples that arrive while the detector learns. */
  buffered: ArrivedSample[]
  record: WatchRecord
}

export interface ArrivedSample {
  /** observedAt, ms. */
  readonly time: number
  readonly value: number
  /** Observation entity. */
  readonly observation: string
  /** Commit time, ms. */
  readonly committedAt: number
}

/** Saved facts of a stream with a model. */
export interface ModelRecord {
  readonly window: WindowState
  rule: ModelRuleState
  /** Hash of the model that the rule's state belongs to. */
  sha256: string
  /** Samples that wait for an opinion, oldest first. */
  readonly waiting: ArrivedSample[]
}

/** A change for the broker: a fragment of an entity. */
export interface FindingWrite {
  /** `update`: nothing is written if the entity was deleted. */
  readonly operation: 'upsert' | 'update'
  readonly entity: JsonObject & { readonly id: string }
  /** Present if it begins a Fault: then no earlier write is of that entity. */
  readonly isFirst?: true
  /** Present once it was sent: the broker may have it. */
  readonly isSent?: true
}

/** State of a stream as it is written. */
export type WatchState = StreamState | 'stopped'

export interface OpenFault {
  readonly id: string
  readonly class: string
  readonly begin: number
  readonly kind: FaultFinding['kind']
  readonly method?: string
  /** Present if its begin was dropped before it was written: then nothing of it is written. */
  readonly isDropped?: true
}

/** Saved facts of a stream besides its detector. */
export interface WatchRecord {
  isStopped: boolean
  /** Newest state that was written or waits to be; undefined before the first judgement. */
  state?: WatchState
  verdict?: 'ok' | 'faulty'
  /** Estimate that stands with the verdict `faulty`. */
  estimate?: Estimate
  /** Newest observedAt of its findings, ms. */
  writtenTo?: number
  /** Newest sample. */
  last?: ArrivedSample
  /** Time since the newest sample during which the gateway could not receive one, ms. */
  downMs: number
  /** Time from the newest sample before it to its arrival, ms. */
  lagMs?: number
  /** Longest time between two arrivals lately, ms, without the time that the gateway was down. */
  longestPauseMs: number
  /** Equal values in succession. */
  equalValues: number
  /** Usual differences from neighbours, by the id of their stream. */
  readonly differences: Record<string, NeighbourDifference>
  /** Samples in succession that are older than the newest one and came at the usual pace. */
  lateSamples: number
  /** Commit time of the newest of them, ms. */
  lateAt?: number
  /** Samples up to this time were learned from history. */
  learnedUntil?: number
  /** Present once the stream had a model. */
  model?: ModelRecord
  open: OpenFault[]
  /** The newest spans of definite faults, whose samples are not learned. */
  faulty: { readonly begin: number; readonly end: number }[]
  /** Findings that are not written yet, oldest first: of an entity at most one sent and one unsent. */
  writes: FindingWrite[]
}

/** Distribution of the difference between the values of two streams. */
export interface NeighbourDifference {
  count: number
  mean: number
  variance: number
}

export const newRecord = (): WatchRecord => ({
  isStopped: false,
  downMs: 0,
  longestPauseMs: 0,
  lateSamples: 0,
  equalValues: 0,
  differences: {},
  open: [],
  faulty: [],
  writes: [],
})

/** Whether a stream is judged: nobody stopped it, and it does not opt out. */
export const isWatched = ({ record, metadata }: FaultStream): boolean =>
  !record.isStopped && !metadata.isExempt
