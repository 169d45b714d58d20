/**
 * Ceilings of fault detection; part of the table in limits.ts.
 */
import { type Limit, limit } from '#base/limits/limit.ts'

export const faultsLimits = {
  /** Each takes at most 64 KB of memory. Beyond it: further streams are not watched. */
  faultsStreamsMax: limit(2_500, 'streams'),
  /** Past observations of a stream that its detector learns from. Beyond it: the newest. */
  faultsHistoryMax: limit(5_000, 'observations'),
  /** Observations learned without yielding. Beyond it: the next turn. */
  faultsLearnSlice: limit(100, 'observations'),
  /** Past observations that a stream's anomaly detectors take after a restart. Beyond it: the newest. */
  faultsRecalledMax: limit(2_500, 'observations'),
  /** Time of the choice of a stream's approach in its thread. Beyond it: the stream stays as it was. */
  faultsChoiceMs: limit(60_000, 'ms'),
  /** Time without a choice. Beyond it: the thread ends. */
  faultsThreadIdleMs: limit(10_000, 'ms'),
  /** Observations of a stream that arrive while its detector learns. Beyond it: the oldest is learned. */
  faultsBufferedMax: limit(1_000, 'observations'),
  /** Past observations from which the scale of a stream is learned, for its model. Beyond it: the newest. */
  faultsModelHistoryMax: limit(640, 'observations'),
  /** Observations judged since detectors were saved; a restart judges them again. Beyond it: saved. */
  faultsSaveObservations: limit(60_000, 'observations'),
  /** Time since detectors were saved. Beyond it: saved. */
  faultsSaveMs: limit(1_800_000, 'ms'),
  /** Streams saved, or read at the start, without yielding. Beyond it: the next turn of the event loop. */
  faultsSaveSliceMs: limit(10, 'ms'),
  /** Detectors that learned at about the same time are saved together. Beyond it: saved. */
  faultsSaveSoonMs: limit(250, 'ms'),
  /** Newest definite faults of a stream whose samples are not learned. Beyond it: learned. */
  faultsSpansMax: limit(32, 'faults'),
  /** Entities of a stream that wait to be written. Beyond it: a whole Fault is dropped; log, status. */
  faultsWritesMax: limit(64, 'writes'),
  /** Entities of all streams that wait, about 1 KB each. Beyond it: a Fault of the stream; log, status. */
  faultsWritesAllMax: limit(10_000, 'writes'),
  /** Entities in one batch request. Beyond it: the next request. */
  faultsBatchWrites: limit(100, 'entities'),
  /** Findings of several streams share a request. Beyond it: written. */
  faultsGatherMs: limit(20, 'ms'),
  /** Longest pause between attempts to write to a broker that fails. Beyond it: the next attempt. */
  faultsRetryMs: limit(60_000, 'ms'),
  /** Longest pause between attempts to replace a sensor by a virtual one. Beyond it: the next attempt. */
  faultsReplacementRetryMs: limit(600_000, 'ms'),
  /** Notifications of a remote broker that are being processed. Beyond it: 503. */
  faultsNotificationsMax: limit(256, 'notifications'),
  /** Silence of a stream by the clock. Beyond it: a dropout, if its interval says so too. */
  faultsSilenceMinMs: limit(10_000, 'ms'),
  /** Pause between two estimates of a silent stream with a shorter interval. Beyond it: the next estimate. */
  faultsEstimateMs: limit(10_000, 'ms'),
  /** Precision of the timers of silent streams. Beyond it: the next tick. */
  faultsTickMs: limit(250, 'ms'),
  /** One turn of the timer wheel, about four minutes. Beyond it: another turn. */
  faultsWheelSlots: limit(1024, 'slots'),
} as const satisfies Record<string, Limit>
