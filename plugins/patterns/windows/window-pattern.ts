/** The label of a window. */
export interface WindowPattern {
  readonly start: number
  readonly end: number
  readonly label: string
  /** 0 to 1. */
  readonly confidence: number
}
