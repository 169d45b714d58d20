/**
 * Ids of instances of history. They follow from where an instance is kept, so they take no room and stay what they are:
 * the record that tells it and its place there, or stream, observedAt and value.
 */
import { hash } from 'node:crypto'
import type { Json } from '#contract/pipeline.ts'

const prefix = 'urn:ngsi-ld:instance:'

/** How ids begin of instances that change records tell. */
export const recordPrefix = `${prefix}n`

/** How ids begin of the observations of a stream. */
export const streamPrefix = (s: number): string => `${prefix}s${s}-`

export const recordInstanceId = (number: number, place: number | 'scope'): string =>
  `${recordPrefix}${number}-${place}`

/** Whether an id is of scopes that an entity was given as such, without a time. */
export const isScopeChangeId = (id: string): boolean => id.startsWith(recordPrefix) && id.endsWith('-scope')

/** The hash tells instances of one time apart; stable, because an instance is its time and value. */
export const observationId = (s: number, time: number, value: Json): string =>
  `${streamPrefix(s)}${time}-${hash('sha1', JSON.stringify(value)).slice(0, 8)}`

/** Stream and observedAt (ms) in the id of an observation; undefined where it is of something else. */
export function observationIn(id: string): { readonly s: number; readonly time: number } | undefined {
  const found = /^urn:ngsi-ld:instance:s(\d+)-(-?\d+)-/.exec(id)
  return found === null ? undefined : { s: Number(found[1]), time: Number(found[2]) }
}
