/**
 * Parses requests to context source registrations [NGSI-LD 5.9.2, 5.9.3]. Each member is parsed, read-only
 * (ignored), or a custom property, stored under its expanded name for context source filters. A fragment
 * replaces whole members, NGSI-LD Null removes them.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { kindsByMember } from '#ngsi-ld/entity/attribute-kind.ts'
import { checkGeometry } from '#ngsi-ld/geo/geometry.ts'
import { text } from '#ngsi-ld/subscription/notification-parse.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isHeaderValue } from '#ngsi-ld/values/header-text.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import {
  checkName,
  checkScope,
  checkUri,
  keyword,
  ngsiLdNull,
  refuseJsonNulls,
} from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { compileIdPattern } from '#ngsi-ld/values/pattern.ts'
import { assertSecretsStay, shownAddress, withStoredSecrets } from '#ngsi-ld/values/secrets.ts'
import { tunnelled } from '#ngsi-ld/values/tunnel-uri.ts'
import {
  type EntityInfo,
  modeOf,
  type Registration,
  type RegistrationInfo,
  type RegistrationManagement,
  registrationModes,
  type TimeInterval,
} from './registration.ts'
import { areConsumption, isOperation } from './registration-operations.ts'
import { parseSourceInfo } from './source-info.ts'

export interface ParseRegistrationOptions {
  readonly context: Pick<Context, 'expand' | 'reference'>
  readonly nowMs: number
  /** Creates a URI for a registration without an id. */
  readonly newId: () => string
}

type PartOptions = Omit<ParseRegistrationOptions, 'newId'>
type Parts = { -readonly [part in keyof Registration]?: Registration[part] | undefined }

/** @throws GatewayError ngsi-ld.bad-request-data naming the member. */
export function parseRegistration(json: unknown, options: ParseRegistrationOptions): Registration {
  const body = bodyOf(json)
  if (body['type'] !== 'ContextSourceRegistration') throw wrongType()
  const id = body['id'] === undefined ? options.newId() : checkUri(body['id'], 'id')
  return checked({ ...withSecrets(partsOf(body, options)), id, context: options.context.reference })
}

/**
 * The registration after applying a fragment.
 * @throws GatewayError as parseRegistration does.
 */
export function patchRegistration(before: Registration, json: unknown, options: PartOptions): Registration {
  const body = bodyOf(json)
  refuseJsonNulls(body)
  const type = body['type']
  if (type !== undefined && type !== 'ContextSourceRegistration') throw wrongType()
  if (body['id'] !== undefined && body['id'] !== before.id) throw badRequestData('cannot be changed', 'id')
  const removed = Object.keys(body).filter((name) => isNothing(body[name]))
  const given = Object.fromEntries(Object.entries(body).filter(([, value]) => !isNothing(value)))
  const { properties, ...parts } = withSecrets(partsOf(given, options), before)
  const custom: Record<string, Json> = { ...before.properties, ...properties }
  const after: Parts = { ...before, ...parts }
  for (const name of removed) {
    if (Object.hasOwn(rules, name)) delete after[partNames[name] ?? (name as keyof Registration)]
    else delete custom[options.context.expand(name)]
  }
  delete after.properties
  return checked({ ...after, ...(Object.keys(custom).length === 0 ? {} : { properties: custom }) })
}

/**
 * Replaces placeholders in the parts of a request with the stored secrets. Stored credentials may not be sent
 * to another host, because a client that may change a registration need not know them.
 */
function withSecrets(parts: Parts, before?: Registration): Parts {
  const stored = before && { uri: before.endpoint, pairs: before.contextSourceInfo }
  const given = { uri: parts.endpoint ?? shownAddress(stored?.uri ?? ''), pairs: parts.contextSourceInfo }
  const { uri, pairs } = withStoredSecrets(given, stored, { uri: 'endpoint', pairs: 'contextSourceInfo' })
  if (stored !== undefined && pairs === undefined) assertSecretsStay(stored, { uri }, 'endpoint')
  return {
    ...parts,
    ...(parts.endpoint === undefined ? {} : { endpoint: uri }),
    ...(pairs === undefined ? {} : { contextSourceInfo: pairs }),
  }
}

/** Checks rules between members. */
function checked(parts: Parts): Registration {
  if (parts.information === undefined) throw badRequestData('is required', 'information')
  if (parts.endpoint === undefined) throw badRequestData('is required', 'endpoint')
  const registration = parts as Registration
  const mode = modeOf(registration)
  if (mode === 'exclusive') {
    for (const [index, info] of registration.information.entries()) {
      const hasNames = info.propertyNames !== undefined || info.relationshipNames !== undefined
      const isConcrete = info.entities?.every(({ id }) => id !== undefined) ?? false
      if (!hasNames || !isConcrete) {
        throw badRequestData(
          'an exclusive registration must list attributes of entities with ids',
          `information[${index}]`,
        )
      }
    }
  }
  if (mode === 'auxiliary' && !areConsumption(registration.operations)) {
    throw badRequestData('an auxiliary source may offer only operations that read', 'operations')
  }
  return registration
}

function bodyOf(json: unknown): JsonObject {
  if (!isObject(json)) throw badRequestData('a registration must be a JSON object')
  const [id, type] = [keyword(json, 'id'), keyword(json, 'type')]
  const { '@id': _, '@type': __, ...body } = json
  return { ...(id === undefined ? {} : { id }), ...(type === undefined ? {} : { type }), ...body }
}

/**
 * NGSI-LD Null, bare or as the value of an attribute: removes a member in a fragment, and is not allowed
 * elsewhere.
 */
const isNothing = (value: Json | undefined): boolean =>
  value === ngsiLdNull ||
  (isObject(value) && [...kindsByMember.keys()].some((member) => own(value, member) === ngsiLdNull))

/** Whether a custom attribute has JSON null as its value. */
const isValueless = (value: Json): boolean =>
  value === null ||
  (isObject(value) && [...kindsByMember.keys()].some((member) => own(value, member) === null))

const wrongType = () => badRequestData('must be ContextSourceRegistration', 'type')

type Rule = 'ignored' | ((value: Json, options: PartOptions) => Parts)

const rules: { readonly [name: string]: Rule } = {
  id: 'ignored',
  type: 'ignored',
  '@context': 'ignored',
  status: 'ignored',
  timesSent: 'ignored',
  timesFailed: 'ignored',
  lastSuccess: 'ignored',
  lastFailure: 'ignored',
  createdAt: 'ignored',
  modifiedAt: 'ignored',
  deletedAt: 'ignored',
  registrationName: (value) => ({ name: text(value, 'registrationName') }),
  description: (value) => ({ description: text(value, 'description') }),
  information: (value, { context }) => ({ information: parseInformation(value, context) }),
  endpoint: (value) => ({ endpoint: parseEndpoint(value) }),
  mode: (value) => ({ mode: oneOf(value, registrationModes, 'mode') }),
  operations: (value) => ({ operations: parseOperations(value) }),
  contextSourceInfo: (value) => ({ contextSourceInfo: parseSourceInfo(value) }),
  tenant: (value) => ({ tenant: tenant(value) }),
  scope: (value) => ({ scope: checkScope(value) }),
  datasetId: (value) => ({
    datasetId: listOf(value).map((id) => (id === '@none' ? id : checkUri(id, 'datasetId'))),
  }),
  location: (value) => ({ location: geometry(value, 'location') }),
  observationSpace: (value) => ({ observationSpace: geometry(value, 'observationSpace') }),
  operationSpace: (value) => ({ operationSpace: geometry(value, 'operationSpace') }),
  observationInterval: (value) => ({ observationInterval: parseInterval(value, 'observationInterval') }),
  managementInterval: (value) => ({ managementInterval: parseInterval(value, 'managementInterval') }),
  expiresAt: (value, { nowMs }) => ({ expiresAt: future(value, 'expiresAt', nowMs) }),
  expires: (value, { nowMs }) => ({ expiresAt: future(value, 'expires', nowMs) }),
  refreshRate: (value) => ({ refreshRate: duration(value, 'refreshRate') }),
  contextSourceAlias: (value) => ({ contextSourceAlias: alias(value) }),
  management: (value) => ({ management: parseManagement(value) }),
}

/** Members stored under a different name. */
const partNames: { readonly [member: string]: keyof Registration } = {
  registrationName: 'name',
  expires: 'expiresAt',
}

function partsOf(body: JsonObject, options: PartOptions): Parts {
  const parts: Parts = {}
  const properties: Record<string, Json> = {}
  for (const [name, value] of Object.entries(body)) {
    const rule = own(rules, name)
    if (rule === 'ignored') continue
    if (isNothing(value) || isValueless(value)) throw badRequestData('must not be null', name)
    if (rule === undefined) properties[checkName(options.context.expand(name), name)] = value
    else Object.assign(parts, rule(value, options))
  }
  return Object.keys(properties).length === 0 ? parts : { ...parts, properties }
}

// ---- Members

function parseInformation(value: Json, context: Pick<Context, 'expand'>): readonly RegistrationInfo[] {
  if (!Array.isArray(value) || value.length === 0)
    throw badRequestData('must be a non-empty list', 'information')
  return (value as readonly Json[]).map((item, index) => {
    const field = `information[${index}]`
    if (!isObject(item)) throw badRequestData('must be an object', field)
    const { entities, propertyNames, relationshipNames, ...others } = item
    const unknown = Object.keys(others)[0]
    if (unknown !== undefined)
      throw badRequestData('is not a member of registration information', `${field}.${unknown}`)
    if (entities === undefined && propertyNames === undefined && relationshipNames === undefined)
      throw badRequestData('must contain entities or attributes', field)
    return {
      ...(entities === undefined ? {} : { entities: parseEntities(entities, context, `${field}.entities`) }),
      ...(propertyNames === undefined
        ? {}
        : { propertyNames: names(propertyNames, `${field}.propertyNames`, context) }),
      ...(relationshipNames === undefined
        ? {}
        : { relationshipNames: names(relationshipNames, `${field}.relationshipNames`, context) }),
    }
  })
}

function parseEntities(value: Json, context: Pick<Context, 'expand'>, field: string): readonly EntityInfo[] {
  if (!Array.isArray(value) || value.length === 0) throw badRequestData('must be a non-empty list', field)
  return (value as readonly Json[]).map((item, index) => {
    const at = `${field}[${index}]`
    if (!isObject(item)) throw badRequestData('must be an object with a type', at)
    const { idPattern } = item
    const [id, type] = [keyword(item, 'id'), keyword(item, 'type')]
    if (type === undefined) throw badRequestData('is required', `${at}.type`)
    const unknown = Object.keys(item).find((name) => !/^(?:@?id|@?type|idPattern)$/.test(name))
    if (unknown !== undefined)
      throw badRequestData('is not a member of entity information', `${at}.${unknown}`)
    if (idPattern !== undefined) compileIdPattern(text(idPattern, `${at}.idPattern`), `${at}.idPattern`)
    return {
      ...(id === undefined ? {} : { id: checkUri(id, `${at}.id`) }),
      ...(idPattern === undefined ? {} : { idPattern: idPattern as string }),
      types: names(type, `${at}.type`, context),
    }
  })
}

function parseEndpoint(value: Json): string {
  const uri = checkUri(value, 'endpoint')
  if (tunnelled(uri)?.path === '/') return uri
  if (!/^https?:\/\//i.test(uri) || !URL.canParse(uri))
    throw badRequestData('must be an http or https URL, or the address of a tunnel', 'endpoint')
  return uri
}

function parseOperations(value: Json): readonly string[] {
  const found = listOf(value).map((name) => text(name, 'operations'))
  if (found.length === 0) throw badRequestData('must contain at least one operation', 'operations')
  const unknown = found.find((name) => !isOperation(name))
  if (unknown !== undefined) throw badRequestData(`${unknown} is not an operation`, 'operations')
  return [...new Set(found)]
}

function parseInterval(value: Json, field: string): TimeInterval {
  if (!isObject(value)) throw badRequestData('must be an object with startAt', field)
  const startAt = instant(value['startAt'], `${field}.startAt`)
  if (value['endAt'] === undefined) return { startAt }
  const endAt = instant(value['endAt'], `${field}.endAt`)
  if (endAt < startAt) throw badRequestData('must not be before startAt', `${field}.endAt`)
  return { startAt, endAt }
}

function parseManagement(value: Json): RegistrationManagement {
  if (!isObject(value)) throw badRequestData('must be an object', 'management')
  const { localOnly, cacheDuration, timeout, cooldown, ...others } = value
  const unknown = Object.keys(others)[0]
  if (unknown !== undefined) throw badRequestData('is not a member of management', `management.${unknown}`)
  if (localOnly !== undefined && typeof localOnly !== 'boolean')
    throw badRequestData('must be true or false', 'management.localOnly')
  return {
    ...(localOnly === undefined ? {} : { localOnly }),
    ...(cacheDuration === undefined
      ? {}
      : { cacheDuration: duration(cacheDuration, 'management.cacheDuration') }),
    ...(timeout === undefined ? {} : { timeout: positive(timeout, 'management.timeout') }),
    ...(cooldown === undefined ? {} : { cooldown: positive(cooldown, 'management.cooldown') }),
  }
}

// ---- Values

const durationForm =
  /^P(?!$)(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?$/

function duration(value: Json, field: string): string {
  if (typeof value !== 'string' || !durationForm.test(value))
    throw badRequestData('must be a duration such as PT10M', field)
  return value
}

/** The alias appears in Via, whose pseudonyms are tokens [RFC 9110 7.6.3]. */
function alias(value: Json): string {
  const found = text(value, 'contextSourceAlias')
  if (!/^[!#$%&'*+.^_`|~:0-9A-Za-z-]+$/.test(found))
    throw badRequestData('must be a name that is allowed in a Via header', 'contextSourceAlias')
  return found
}

/** A geometry, bare or as the value of a GeoProperty. */
function geometry(value: Json, field: string): Json {
  if (isObject(value) && value['type'] === 'GeoProperty') {
    checkGeometry(value['value'] ?? null, field)
    return value
  }
  checkGeometry(value, field)
  return value
}

function names(value: Json, field: string, context: Pick<Context, 'expand'>): readonly string[] {
  const found = listOf(value).map((name) => checkName(context.expand(text(name, field)), field))
  if (found.length === 0) throw badRequestData('must contain at least one name', field)
  return [...new Set(found)]
}

/** The source may have other rules for tenant names, but the gateway sends the name in a header. */
function tenant(value: Json): string {
  if (!isHeaderValue(value) || value === '')
    throw badRequestData('must be a name that is allowed in a header', 'tenant')
  return value
}

function positive(value: Json, field: string): number {
  if (typeof value !== 'number' || !(value > 0)) throw badRequestData('must be a number above 0', field)
  return value
}

function instant(value: Json | undefined, field: string): number {
  const ms = typeof value === 'string' ? dateTimeToMs(value) : undefined
  if (ms === undefined) throw badRequestData('must be a DateTime such as 2030-12-31T23:59:59Z', field)
  return ms
}

function future(value: Json, field: string, nowMs: number): number {
  const ms = instant(value, field)
  if (ms <= nowMs) throw badRequestData('must be in the future', field)
  return ms
}

function oneOf<T extends string>(value: Json, allowed: readonly T[], field: string): T {
  const found = allowed.find((each) => each === value)
  if (found === undefined) throw badRequestData(`must be one of ${allowed.join(', ')}`, field)
  return found
}
