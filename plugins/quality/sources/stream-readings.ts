/** Selects the readings of a payload that are observations of a stream. Pure. */
import type { Reading } from '#contract'

export interface WantedReadings {
  /** Id of the stream. */
  readonly id: string
  /** The field that its access details name. */
  readonly field: string | undefined
  /** Label of its observed property, lower case. */
  readonly label: string | undefined
}

/**
 * Readings of the field that the access details name; else those whose device and field end the id of the
 * stream; else those whose field is its label; else all, if the payload has a single quantity.
 */
export function readingsOf(
  { id, field, label }: WantedReadings,
  readings: readonly Reading[],
): readonly Reading[] {
  if (field !== undefined) return readings.filter((one) => one.field === field)
  const named = readings.filter((one) => id.endsWith(`:${one.device}:${one.field}`))
  if (named.length > 0) return named
  const labelled = readings.filter((one) => one.field.toLowerCase() === label)
  if (labelled.length > 0) return labelled
  const [first] = readings
  const isSingle = readings.every((one) => one.device === first!.device && one.field === first!.field)
  return isSingle ? readings : []
}
