/**
 * Parses and renders snapshots (NGSI-LD 1.9, 5.2.41) and their notifications (5.3.4). Members that only the
 * gateway sets are ignored in a client's snapshot.
 */
import type { QueryOutcome, SnapshotFacts, SnapshotView } from '#broker/tenant/snapshot-files.ts'
import type { Json } from '#contract'
import { parseEndpoint } from '#ngsi-ld/subscription/notification-parse.ts'
import { type NotificationEndpoint, shownEndpoint } from '#ngsi-ld/subscription/subscription.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { addDuration, parseDuration } from '#ngsi-ld/values/duration.ts'
import { isList, isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

const priorities = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as const

const given = new Set([
  ...['id', 'type', '@context', 'snapshotQueries', 'snapshotTemporalQueries'],
  ...['snapshotLifetime', 'snapshotPriority', 'endpoint', 'receiverInfo'],
])
/** Members that only the gateway sets. */
const reported = new Set([
  ...['snapshotStatus', 'snapshotQueriesDetails', 'snapshotTemporalQueriesDetails'],
  ...['createdAt', 'modifiedAt', 'expiresAt', 'lastUsedAt'],
])

/** Members that a query on snapshots may name: all those shown in responses. */
export const snapshotMembers: ReadonlySet<string> = new Set([...given, ...reported]).difference(
  new Set(['@context', 'snapshotLifetime']),
)

/** A member in a change that only the gateway may set. */
export const readOnlyIn = (body: Json): string | undefined =>
  isObject(body) ? Object.keys(body).find((member) => reported.has(member)) : undefined

export interface SnapshotBody {
  readonly id: string | undefined
  readonly queries: readonly Json[] | undefined
  readonly temporalQueries: readonly Json[] | undefined
  readonly priority: number | undefined
  readonly endpoint: NotificationEndpoint | undefined
  readonly expiresAt: number | undefined
}

/** @throws ngsi-ld.bad-request-data naming the invalid member */
export function readSnapshot(body: Json, nowMs: number): SnapshotBody {
  if (!isObject(body)) throw badRequestData('must be an object of type Snapshot', 'body')
  for (const member of Object.keys(body)) {
    if (!given.has(member) && !reported.has(member))
      throw badRequestData('is not a member of a Snapshot', member)
  }
  const { id, type, snapshotQueries, snapshotTemporalQueries, snapshotLifetime, snapshotPriority } = body
  if (type !== undefined && type !== 'Snapshot') throw badRequestData('must be Snapshot', 'type')
  const isPriority = priorities.some((priority) => priority === snapshotPriority)
  if (snapshotPriority !== undefined && !isPriority)
    throw badRequestData('must be 1 to 10', 'snapshotPriority')
  return {
    id: id === undefined ? undefined : checkUri(id, 'id'),
    queries: listIn(snapshotQueries, 'snapshotQueries'),
    temporalQueries: listIn(snapshotTemporalQueries, 'snapshotTemporalQueries'),
    priority: snapshotPriority as number | undefined,
    endpoint: endpointOf(body),
    expiresAt: snapshotLifetime === undefined ? undefined : endOf(snapshotLifetime, nowMs),
  }
}

function listIn(value: Json | undefined, field: string): readonly Json[] | undefined {
  if (value === undefined) return undefined
  if (!isList(value) || value.length === 0) throw badRequestData('must be a list of queries', field)
  return value
}

/** The notification endpoint: an address, or an endpoint as in a subscription. */
function endpointOf({ endpoint, receiverInfo }: JsonObject): NotificationEndpoint | undefined {
  if (endpoint === undefined) {
    if (receiverInfo !== undefined) throw badRequestData('is allowed only with an endpoint', 'receiverInfo')
    return undefined
  }
  const whole = typeof endpoint === 'string' ? { uri: endpoint } : endpoint
  if (!isObject(whole)) throw badRequestData('must be an address', 'endpoint')
  const parsed = parseEndpoint(receiverInfo === undefined ? whole : { ...whole, receiverInfo }, 'endpoint')
  if (!/^https?:/i.test(parsed.uri)) throw badRequestData('must be an http or https URL', 'endpoint')
  return parsed
}

function endOf(lifetime: Json, nowMs: number): number {
  const duration = typeof lifetime === 'string' ? parseDuration(lifetime) : undefined
  if (duration === undefined) throw badRequestData('must be a duration, such as PT1H', 'snapshotLifetime')
  return addDuration(nowMs, duration, 1)
}

export function renderSnapshot(facts: SnapshotView): JsonObject {
  const { queries, temporalQueries, endpoint, details, temporalDetails, lastUsedAt } = facts
  return {
    id: facts.id,
    type: 'Snapshot',
    snapshotStatus: facts.status,
    ...(queries === undefined ? {} : { snapshotQueries: queries }),
    ...(temporalQueries === undefined ? {} : { snapshotTemporalQueries: temporalQueries }),
    ...(details === undefined ? {} : { snapshotQueriesDetails: details.map(outcomeOf) }),
    ...(temporalDetails === undefined
      ? {}
      : { snapshotTemporalQueriesDetails: temporalDetails.map(outcomeOf) }),
    snapshotPriority: facts.priority,
    ...(endpoint === undefined ? {} : renderEndpoint(endpoint)),
    createdAt: msToDateTime(facts.createdAt),
    modifiedAt: msToDateTime(facts.modifiedAt),
    expiresAt: msToDateTime(facts.expiresAt),
    ...(lastUsedAt === undefined ? {} : { lastUsedAt: msToDateTime(lastUsedAt) }),
  }
}

const outcomeOf = (outcome: QueryOutcome): JsonObject => ({ ...outcome }) as unknown as JsonObject

function renderEndpoint(whole: NotificationEndpoint): JsonObject {
  const { receiverInfo, ...endpoint } = shownEndpoint(whole)
  const alone = Object.keys(endpoint).length === 1 ? endpoint.uri : { ...endpoint }
  return {
    endpoint: alone as Json,
    ...(receiverInfo === undefined ? {} : { receiverInfo: receiverInfo as unknown as Json }),
  }
}

/** The notification about a snapshot; for a deleted one, expiresAt is in the past. */
export function snapshotNotification(
  facts: SnapshotFacts,
  { id, nowMs }: { id: string; nowMs: number },
): JsonObject {
  const { details, temporalDetails } = facts
  return {
    id,
    type: 'SnapshotNotification',
    snapshotId: facts.id,
    notifiedAt: msToDateTime(nowMs),
    expiresAt: msToDateTime(facts.expiresAt),
    snapshotPriority: facts.priority,
    snapshotStatus: facts.status,
    ...(details === undefined ? {} : { snapshotQueriesDetails: details.map(outcomeOf) }),
    ...(temporalDetails === undefined
      ? {}
      : { temporalSnapshotQueriesDetails: temporalDetails.map(outcomeOf) }),
  }
}
