/** Progress and results of a reconciliation. */
export interface ReconcileTask {
  phase: 'buckets' | 'pages' | 'deleted' | 'histories' | 'deletedHistories' | 'done' | 'cancelled'
  /** Row id of the last compared entity, or log number of the last compared deletion. */
  after: number
  readonly isDry: boolean
  readonly reason: 'asked' | 'long-cut' | 'restored' | 'scope'
  /** The scope prefix at the centre before the settings changed it. */
  readonly placedBefore?: string | undefined
  readonly startedAt: number
  endedAt?: number
  compared: number
  /** Entities that are missing at the centre, or differ there. */
  missing: number
  different: number
  /** Attribute instances that are newer at the centre and are kept. */
  newer?: number
  /** Entities and histories that could not be compared: each alone exceeds the limit of one response. */
  tooLarge?: number
  /** Entities at the centre that were deleted here. */
  surplus: number
  /** Entities at the centre that originate here but are unknown here; they are kept. */
  unknown: number
  /** Days on which the history of an attribute differs, and observations sent for them. */
  days: number
  observations: number
}
