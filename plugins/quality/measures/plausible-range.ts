/**
 * The plausible values of a stream. `stream-metadata.ts` reads them from the Sensor or from the usual
 * properties; `plausibility.ts` compares a value with them.
 */
export interface PlausibleRange {
  /** `any`: numbers within the bounds; other values are not judged. */
  readonly kind: 'number' | 'text' | 'any'
  readonly min?: number | undefined
  readonly max?: number | undefined
  /** Regular expression that a text matches as a whole. */
  readonly regexp?: string | undefined
}
