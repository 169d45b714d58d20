/**
 * Ceilings of the pattern extractor; part of the table in limits.ts.
 */
import { type Limit, limit } from '#base/limits/limit.ts'

export const patternsLimits = {
  /** Components of a mixture or centroids; each has a label of its own. Beyond it: 400. */
  patternComponentsMax: limit(64, 'components'),
  /** Features of a window; 32 streams of eight segments. Beyond it: 400. */
  patternFeaturesMax: limit(256, 'numbers'),
  /** Labelled examples of a model; all are compared with each window. Beyond it: 400. */
  patternExamplesMax: limit(2000, 'examples'),
  /** Models that are registered at a time. Beyond it: 403. */
  patternModelsMax: limit(64, 'models'),
  /** Document of a model, as text. Beyond it: 400. */
  patternModelBytes: limit(1_000_000, 'bytes'),
  /** Documents of all models, which one response lists. Beyond it: 403. */
  patternModelsBytes: limit(4_000_000, 'bytes'),
  /** Streams of a group. Beyond it: 400. */
  patternPropertiesMax: limit(32, 'properties'),
  /**
   * Streams that exist; those of models are known with place and platform. Beyond it: further ones are not
   * analysed.
   */
  patternStreamsMax: limit(20_000, 'streams'),
  /**
   * Streams whose values are cached, each about 16 bytes a value. Beyond it: further ones are not analysed.
   */
  patternCachedStreamsMax: limit(1_000, 'streams'),
  /** Groups of streams of a model. Beyond it: further groups are not analysed. */
  patternGroupsMax: limit(500, 'groups'),
  /** Points of the area of a model; each stream is compared with them. Beyond it: 400. */
  patternAreaPointsMax: limit(1_000, 'points'),
  /** Rows of a window. Beyond it: 400. */
  patternWindowRowsMax: limit(1_440, 'rows'),
  /**
   * Rows of a group that are kept besides those of a window, so that late values find theirs. Beyond it:
   * the oldest is dropped.
   */
  patternLateRows: limit(256, 'rows'),
  /** Rows beyond those, so that they are dropped several at a time. Beyond it: dropped. */
  patternRowSlack: limit(64, 'rows'),
  /** Values of a stream, if it is in groups of different hours. Beyond it: the oldest is dropped. */
  patternValuesMax: limit(4_096, 'values'),
  /** Observation entities whose stream is known. Beyond it: read again. */
  patternObservedMax: limit(20_000, 'entities'),
  /** Values in memory only; a restart reads the log since then again. Beyond it: saved. */
  patternSaveMs: limit(30_000, 'ms'),
  /** Values that are saved at once. Beyond it: saved. */
  patternUnsavedMax: limit(2_000, 'values'),
  /** Entities, values or windows worked on without yielding. Beyond it: the next turn. */
  patternTurnMs: limit(2, 'ms'),
  /** Cached values read at a time. Beyond it: the next page. */
  patternValuesPage: limit(1_000, 'values'),
  /** Commit times of one read of history, after the log was lost. Beyond it: the next read. */
  patternHistoryMs: limit(600_000, 'ms'),
  /** Streams that the subscription of a model names. Beyond it: the subscription names only the type. */
  patternNamedStreamsMax: limit(100, 'streams'),
  /** The subscriptions of models are checked this often. Beyond it: the next check. */
  patternCheckMs: limit(60_000, 'ms'),
  /**
   * Values analysed at once; a window that several of them change is published once. Beyond it: the next
   * part.
   */
  patternValuesAtOnce: limit(500, 'values'),
  /** Events in one batch request. Beyond it: the next request. */
  patternBatchEvents: limit(100, 'events'),
  /** Events that wait to be written. Beyond it: the log is not read on. */
  patternWaitingMax: limit(2_000, 'events'),
  /** Windows of several groups share a request. Beyond it: written. */
  patternGatherMs: limit(20, 'ms'),
  /** Windows in one call of an ONNX model. Beyond it: the next call. */
  patternBatchWindows: limit(64, 'windows'),
  /**
   * Windows that wait for the label of an ONNX model, at most 1 KB each. Beyond it: the log is not read on;
   * while a model cannot run, its oldest window is skipped and counted.
   */
  patternUnlabelledMax: limit(2_000, 'windows'),
  /** Longest pause between attempts to write to a broker, or to run an ONNX model. Beyond it: the next. */
  patternRetryMs: limit(60_000, 'ms'),
  /** Numbers of clusters that a training compares, if the request names none. Beyond it: not tried. */
  patternTriedComponentsMax: limit(8, 'components'),
  /** Values of all streams of a training, 16 bytes each. Beyond it: the training fails. */
  patternTrainingValuesMax: limit(200_000, 'values'),
  /** Windows of a training without labels; with labels as many as examples. Beyond it: the training fails. */
  patternTrainingWindowsMax: limit(5_000, 'windows'),
  /** Computation of a training. Beyond it: the training fails. */
  patternTrainingMs: limit(900_000, 'ms'),
  /** Trainings whose requests and results are stored. Beyond it: the oldest is forgotten. */
  patternTrainingsKept: limit(8, 'trainings'),
  /** Times that a training begins, if the gateway ends before it does. Beyond it: the training failed. */
  patternTrainingRuns: limit(3, 'times'),
} as const satisfies Record<string, Limit>
