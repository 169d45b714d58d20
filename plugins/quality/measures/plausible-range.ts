/** The plausible values of a stream. */
export interface PlausibleRange {
  /** `any`: numbers within the bounds; other values are not judged. */
  readonly kind: 'number' | 'text' | 'any'
  readonly min?: number | undefined
  readonly max?: number | undefined
  /** Regular expression that a text matches as a whole. */
  readonly regexp?: string | undefined
}
