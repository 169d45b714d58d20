/**
 * Validates responses to queries for the centre's data. A response counts if it has the expected shape, or if
 * absence is confirmed. Anything else, such as a page of an intermediary, leads to a retry.
 */
import type { HistoryDigests } from '#broker/tenant/digests.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { Digest } from '#ngsi-ld/federation/digest.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { type Confirmation, endedEarly, isTooLarge } from '#uplink/connection/absence.ts'
import { keyOf } from '#uplink/steps/deletion-steps.ts'
import { later, type SendOutcome } from './outcome.ts'

/** A validated response. */
export interface CentreReply<T> {
  /** Undefined if nothing of the kind exists at the centre. */
  readonly json: T | undefined
  readonly isTooLarge?: boolean
}

/** Validates a response; without usable content, the request is to be repeated later. */
export function replyOf<T>(
  { answer, isConfirmed }: Confirmation,
  is: (json: unknown) => json is T,
): CentreReply<T> | (SendOutcome & { kind: 'later' }) {
  if (isTooLarge(answer) || endedEarly(answer)) return { json: undefined, isTooLarge: true }
  if ('failure' in answer) return { kind: 'later', reason: answer.reason, isUnreachable: true }
  const json = answer.status === 200 ? parsedJson(answer.text) : undefined
  if (is(json)) return { json }
  return isConfirmed
    ? { json: undefined }
    : later(`answered ${answer.status} to a query without usable content`)
}

const noAttributes: ReadonlySet<string> = new Set([
  ...['id', 'type', 'scope', '@context', 'expiresAt', 'createdAt', 'modifiedAt'],
])

/** The attribute instances of an entity as the centre returns it, as `name` or `name datasetId`. */
export const remoteKeys = (entity: Entity): readonly string[] =>
  Object.keys(entity)
    .filter((name) => !noAttributes.has(name))
    .flatMap((name) => instancesOf(entity, name).map(({ datasetId = '' }) => keyOf(name, datasetId)))

/** The attribute instance with a key. */
export function remoteInstance(entity: Entity, key: string): AttributeInstance | undefined {
  const [name = '', dataset = ''] = key.split(' ')
  return instancesOf(entity, name).find(({ datasetId = '' }) => datasetId === dataset)
}

/**
 * A system time (ms) from another broker, which may have more digits than the standard allows; undefined if
 * it is no time.
 */
export function remoteTime(text: unknown): number | undefined {
  const ms = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

const isDigest = (one: unknown): one is Digest => Array.isArray(one) && one.length >= 2

export const areBuckets = (json: unknown): json is { readonly buckets: readonly Digest[] } =>
  isObject(json) && Array.isArray(json['buckets']) && json['buckets'].every(isDigest)

export const isBucket = (json: unknown): json is { readonly entities: Readonly<Record<string, number>> } =>
  isObject(json) && isObject(json['entities'])

export const areHistories = (
  json: unknown,
): json is { readonly histories: Readonly<Record<string, HistoryDigests>> } =>
  isObject(json) && isObject(json['histories']) && Object.values(json['histories']).every(isObject)

export const areForeignAttributes = (
  json: unknown,
): json is { readonly others: Readonly<Record<string, readonly string[]>> } =>
  isObject(json) && isObject(json['others']) && Object.values(json['others']).every(Array.isArray)

/** Another gateway that writes the same entities at the centre: their number, and an example. */
export interface CollisionAtCentre {
  readonly origin: string
  readonly entities: number
  readonly entity: string
}

/** The collisions of a gateway in the pairs that a centre reports. */
export function collisionsIn(json: unknown, alias: string): readonly CollisionAtCentre[] {
  if (!Array.isArray(json)) return []
  return json.flatMap((one: unknown): CollisionAtCentre[] => {
    if (!isObject(one) || !Array.isArray(one['origins'])) return []
    const origin: unknown = one['origins'].find((name) => name !== alias)
    const { entities, entity } = one
    if (typeof origin !== 'string' || typeof entities !== 'number' || typeof entity !== 'string') return []
    return [{ origin, entities, entity }]
  })
}
