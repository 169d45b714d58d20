/**
 * Ceilings of the virtual sensor creator; part of the table in limits.ts.
 */
import { type Limit, limit } from '#base/limits/limit.ts'

export const virtualLimits = {
  /** Virtual sensors at a time, each with a model. Beyond it: none is created. */
  virtualSensorsMax: limit(100, 'virtual sensors'),
  /** Requests that wait for the search for their sources. Beyond it: 429; retry. */
  virtualPlansMax: limit(64, 'requests'),
  /** Value of `limitSourceSensors`. Beyond it: 400. */
  virtualSourcesMax: limit(32, 'sensors'),
  /** Value of `maxDistance`. Beyond it: 400. */
  virtualMetersMax: limit(1_000_000, 'metres'),
  /** Sensors or observable properties read in a search for sources. Beyond it: not considered. */
  virtualCandidatesMax: limit(4_000, 'entities'),
  /**
   * Newest values of a history that are tested for correlation first. Beyond it: tested if these do not
   * correlate.
   */
  virtualFirstTestedValues: limit(300, 'values'),
  /** Newest values of a history that are tested before the response. Beyond it: not tested. */
  virtualTestedValues: limit(2_000, 'values'),
  /** Newest values of each history that a training uses. Beyond it: not read. */
  virtualTrainedValues: limit(10_000, 'values'),
  /** Values of a history read at a time. Beyond it: the next slice. */
  virtualSliceValues: limit(250, 'values'),
  /** Pause between two slices of a training. Beyond it: the next slice. */
  virtualRestMs: limit(10, 'ms'),
  /** Computation of a training. Beyond it: the training fails. */
  virtualTrainingMs: limit(300_000, 'ms'),
  /** Pause before a failed training is repeated; it doubles with each failure. Beyond it: repeated. */
  virtualRetrainMs: limit(60_000, 'ms'),
  /** Longest such pause. Beyond it: repeated. */
  virtualRetrainMaxMs: limit(3_600_000, 'ms'),
  /** A trained model as JSON. Beyond it: the training fails. */
  virtualModelBytes: limit(1_000_000, 'bytes'),
  /** Readings in memory of a source. Beyond it: the nearer of two in time replaces the other. */
  virtualReadingsMax: limit(256, 'readings'),
  /** Predictions that are due within this time share a commit. Beyond it: the next commit. */
  virtualGatherMs: limit(20, 'ms'),
  /**
   * Pause before a failed write of predictions is repeated, unless the next one is due. Beyond it:
   * repeated.
   */
  virtualRetryMs: limit(5_000, 'ms'),
  /** Correlations computed without yielding. Beyond it: the next turn. */
  virtualTurnMs: limit(2, 'ms'),
} as const satisfies Record<string, Limit>
