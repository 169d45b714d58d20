/**
 * The words for what a rule finds. A finding is one fault or anomaly of one stream, with a begin and, once it
 * is over, an end. Class and begin identify it: a finding that is reported again replaces the earlier report.
 */

export type FaultClass =
  | 'dropout'
  | 'range'
  | 'sentinel'
  | 'stuck'
  | 'low-variance'
  | 'spike'
  | 'noise'
  | 'rate'
  | 'clock'
  | 'bias'
  | 'gain'
  | 'drift'
  | 'anomaly'

export interface FaultFinding {
  readonly class: FaultClass
  /** `definite`: no healthy sensor shows it. `anomaly`: unusual, but the environment may be the cause. */
  readonly kind: 'definite' | 'anomaly'
  /** observedAt of the first sample that the finding covers, in ms. */
  readonly begin: number
  /**
   * observedAt of the last sample that the finding covers, of the first sample after a dropout; absent while
   * it lasts.
   */
  readonly end?: number
  /** 0 to 1: probability of such values on a healthy stream. */
  readonly likelihood: number
  readonly method: string
}

/** A rule's opinion of one sample: the rule applies to it, and since when. */
export interface Match {
  readonly class: FaultClass
  readonly kind: FaultFinding['kind']
  readonly begin: number
  readonly likelihood: number
  /** Names the model, if a model gave this opinion. */
  readonly method?: string
}
