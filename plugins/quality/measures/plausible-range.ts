/** The plausible values of a stream. */
export interface PlausibleRange {
  readonly kind: 'number' | 'text'
  readonly min?: number | undefined
  readonly max?: number | undefined
  /** Regular expression that a text matches as a whole. */
  readonly regexp?: string | undefined
}
