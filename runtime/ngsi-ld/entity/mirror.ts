/**
 * An attribute that only says when another one was observed (sosa:resultTime), as gateways send it up with every value.
 * A change of it together with that value is no more than the observation. Pure.
 */
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { AttributeChange } from './entity-draft.ts'
import { observationOf } from './merge.ts'

export const mirrorName = 'http://www.w3.org/ns/sosa/resultTime'

/** Changes that are one observation and its time in another attribute. */
export interface Mirrored {
  readonly observed: AttributeChange
  readonly mirror: string
}

/** Undefined where the changes are anything else, or say the time otherwise than it would be rendered. */
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
