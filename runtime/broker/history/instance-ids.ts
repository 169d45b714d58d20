/**
 * Ids of instances of history. They are derived from where an instance is stored, so they need no space and
 * are stable: record number and index, or stream, observedAt and value.
 */
import { hash } from 'node:crypto'
import type { Json } from '#contract/pipeline.ts'

const prefix = 'urn:ngsi-ld:instance:'

/** Prefix of the ids of instances from change records. */
export const recordPrefix = `${prefix}n`

/** Prefix of the ids of a stream's observations. */
export const streamPrefix = (s: number): string => `${prefix}s${s}-`

export const recordInstanceId = (number: number, place: number | 'scope'): string =>
  `${recordPrefix}${number}-${place}`

/** Whether an id belongs to a scope change of the entity, which has no observedAt. */
export const isScopeChangeId = (id: string): boolean => id.startsWith(recordPrefix) && id.endsWith('-scope')

/** The hash distinguishes instances of one time. It is stable, because an instance is its time and value. */
export const observationId = (s: number, time: number, value: Json): string =>
  `${streamPrefix(s)}${time}-${hash('sha1', JSON.stringify(value)).slice(0, 8)}`

/** Stream and observedAt (ms) in the id of an observation; undefined for other ids. */
export function observationIn(id: string): { readonly s: number; readonly time: number } | undefined {
  const found = /^urn:ngsi-ld:instance:s(\d+)-(-?\d+)-/.exec(id)
  return found === null ? undefined : { s: Number(found[1]), time: Number(found[2]) }
}
