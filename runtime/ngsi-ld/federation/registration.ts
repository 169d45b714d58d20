/**
 * A context source registration as the gateway stores it [NGSI-LD 5.2.9]: plain JSON with core-compacted
 * names. This file derives its status over time and its representation for clients. `registration-parse.ts`
 * parses requests, `registration-match.ts` matches registrations.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { inLanguage, languageRanges } from '#ngsi-ld/entity/language.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, present } from '#ngsi-ld/values/json.ts'
import { type KeyValue, shownAddress, shownPairs } from '#ngsi-ld/values/secrets.ts'

export const registrationModes = ['inclusive', 'exclusive', 'redirect', 'auxiliary'] as const
export type RegistrationMode = (typeof registrationModes)[number]

/** The entities of a source; without id and idPattern all entities of the types. */
export interface EntityInfo {
  readonly id?: string
  readonly idPattern?: string
  readonly types: readonly string[]
}

/** Entities, attributes of them, or both; without names every attribute, without entities every entity. */
export interface RegistrationInfo {
  readonly entities?: readonly EntityInfo[]
  readonly propertyNames?: readonly string[]
  readonly relationshipNames?: readonly string[]
}

/** Milliseconds UTC; open-ended without `endAt`. */
export interface TimeInterval {
  readonly startAt: number
  readonly endAt?: number
}

export interface RegistrationManagement {
  readonly localOnly?: boolean
  /** ISO 8601 duration. */
  readonly cacheDuration?: string
  /** Milliseconds. */
  readonly timeout?: number
  readonly cooldown?: number
}

/** Absent members mean the default of the standard. */
export interface Registration {
  readonly id: string
  readonly name?: string
  readonly description?: string
  readonly information: readonly RegistrationInfo[]
  readonly endpoint: string
  readonly mode?: RegistrationMode
  /** Names of operations and of groups of operations. */
  readonly operations?: readonly string[]
  readonly contextSourceInfo?: readonly KeyValue[]
  readonly tenant?: string
  readonly scope?: string | readonly string[]
  readonly datasetId?: readonly string[]
  readonly location?: Json
  readonly observationSpace?: Json
  readonly operationSpace?: Json
  readonly observationInterval?: TimeInterval
  readonly managementInterval?: TimeInterval
  /** Milliseconds UTC. */
  readonly expiresAt?: number
  readonly refreshRate?: string
  readonly contextSourceAlias?: string
  readonly management?: RegistrationManagement
  /** Custom members, for context source filters. */
  readonly properties?: { readonly [name: string]: Json }
  /** The @context of the create request. */
  readonly context: readonly Json[]
}

/**
 * Results of the requests forwarded to a source; `timesSent` includes failed ones. Times are ms UTC, absent
 * until the first event.
 */
export interface RegistrationStatistics {
  createdAt: number
  modifiedAt: number
  timesSent: number
  timesFailed: number
  lastSuccess?: number | undefined
  lastFailure?: number | undefined
}

/** The address below which a source serves `/ngsi-ld/v1`; its endpoint may include that path or not. */
export const baseOf = (endpoint: string): string =>
  endpoint.replace(/\/+$/, '').replace(/\/ngsi-ld(?:\/v1)?$/, '')

export const modeOf = ({ mode }: Registration): RegistrationMode => mode ?? 'inclusive'

export const isExpired = ({ expiresAt }: Registration, nowMs: number): boolean =>
  expiresAt !== undefined && expiresAt <= nowMs

export interface RegistrationView {
  readonly registration: Registration
  readonly statistics: RegistrationStatistics
}

/** Views whose custom members in several languages are reduced to the best match. */
export function inBestLanguage(lang: string, views: readonly RegistrationView[]): RegistrationView[] {
  const ranges = languageRanges(lang)
  return views.map(({ registration, statistics }) => {
    if (registration.properties === undefined) return { registration, statistics }
    const localized = Object.entries(registration.properties).map(([name, value]): [string, Json] => [
      name,
      isObject(value) ? (inLanguage(value as unknown as AttributeInstance, ranges) as JsonObject) : value,
    ])
    const properties: { readonly [name: string]: Json } = Object.fromEntries(localized)
    return { registration: { ...registration, properties }, statistics }
  })
}

/** The registration as a client reads it, without @context. */
export function renderRegistration(
  { registration, statistics }: RegistrationView,
  { context, sysAttrs }: { context: Pick<Context, 'compact'>; sysAttrs: boolean },
): JsonObject {
  const show = (name: string): string => context.compact(name)
  const { timesSent, timesFailed, lastSuccess, lastFailure } = statistics
  const { expiresAt, observationInterval, managementInterval, properties } = registration
  const failed = lastFailure !== undefined && (lastSuccess === undefined || lastFailure > lastSuccess)
  return present({
    id: registration.id,
    type: 'ContextSourceRegistration',
    registrationName: registration.name,
    description: registration.description,
    information: registration.information.map((info) => renderInfo(info, show)),
    endpoint: shownAddress(registration.endpoint),
    mode: modeOf(registration),
    operations: registration.operations ?? ['federationOps'],
    contextSourceInfo: shownPairs(registration.contextSourceInfo) as unknown as Json,
    tenant: registration.tenant,
    scope: registration.scope,
    datasetId: registration.datasetId,
    location: registration.location,
    observationSpace: registration.observationSpace,
    operationSpace: registration.operationSpace,
    observationInterval: interval(observationInterval),
    managementInterval: interval(managementInterval),
    expiresAt: time(expiresAt),
    refreshRate: registration.refreshRate,
    contextSourceAlias: registration.contextSourceAlias,
    management: registration.management as unknown as Json,
    ...Object.fromEntries(Object.entries(properties ?? {}).map(([name, value]) => [show(name), value])),
    status: timesSent === 0 ? undefined : failed ? 'failed' : 'ok',
    timesSent: timesSent > 0 ? timesSent : undefined,
    timesFailed: timesFailed > 0 ? timesFailed : undefined,
    lastSuccess: time(lastSuccess),
    lastFailure: time(lastFailure),
    ...(sysAttrs ? { createdAt: time(statistics.createdAt), modifiedAt: time(statistics.modifiedAt) } : {}),
  })
}

function renderInfo(info: RegistrationInfo, show: (name: string) => string): JsonObject {
  return present({
    entities: info.entities?.map(({ id, idPattern, types }) =>
      present({ id, idPattern, type: types.length === 1 ? show(types[0]!) : types.map(show) }),
    ),
    propertyNames: info.propertyNames?.map(show),
    relationshipNames: info.relationshipNames?.map(show),
  })
}

function interval(given: TimeInterval | undefined): JsonObject | undefined {
  return given && present({ startAt: time(given.startAt), endAt: time(given.endAt) })
}

function time(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : msToDateTime(ms)
}
