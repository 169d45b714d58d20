/**
 * An attribute that only contains the observation time of another one (sosa:resultTime), as gateways upload
 * it with every value. A change of both together counts as a single observation. Pure.
 */
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { AttributeChange } from './entity-draft.ts'
import { observationOf } from './merge.ts'

export const mirrorName = 'http://www.w3.org/ns/sosa/resultTime'

/** Changes that amount to one observation and its time in another attribute. */
export interface Mirrored {
  readonly observed: AttributeChange
  readonly mirror: string
}

/** Undefined for any other changes, and if the time is not in the canonical text. */
export function mirroredIn(changes: readonly AttributeChange[]): Mirrored | undefined {
  if (changes.length !== 2) return undefined
  const shown = changes.find(({ name }) => name === mirrorName)
  const observed = changes.find(({ name }) => name !== mirrorName)
  if (shown === undefined || observed === undefined) return undefined
  const { before, after, datasetId } = shown
  const observation = observationOf(observed)
  if (observation === undefined || before === undefined || datasetId !== undefined) return undefined
  const isTime = after?.type === 'Property' && after.value === msToDateTime(observation.observedAtMs)
  const wasTime = typeof before.value === 'string' && dateTimeToMs(before.value) !== undefined
  const isSameElse = JSON.stringify({ ...before, value: '' }) === JSON.stringify({ ...after, value: '' })
  return isTime && wasTime && isSameElse ? { observed, mirror: mirrorName } : undefined
}
