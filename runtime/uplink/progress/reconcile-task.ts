/** How far a comparison is, and what it found. */
export interface ReconcileTask {
  phase: 'buckets' | 'pages' | 'deleted' | 'histories' | 'graves' | 'done' | 'cancelled'
  /** The row of the last entity that was compared, or the number by which the last one was deleted. */
  after: number
  readonly isDry: boolean
  readonly reason: 'asked' | 'long-cut' | 'restored' | 'scope'
  /** Where all stood over there before the settings said otherwise. */
  readonly placedBefore?: string | undefined
  readonly startedAt: number
  endedAt?: number
  compared: number
  /** Entities that are not over there, or not as they are here. */
  missing: number
  different: number
  /** Attribute instances that are newer over there, and stay. */
  newer?: number
  /** Entities, and histories of entities, of which there is no telling, because alone they are more than one answer may hold. */
  tooLarge?: number
  /** Entities over there that were deleted here. */
  surplus: number
  /** Entities over there that came from here, of which nothing is known here; they stay. */
  unknown: number
  /** Days of an attribute whose history differs, and observations of them that were sent. */
  days: number
  observations: number
}
