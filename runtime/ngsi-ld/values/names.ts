/**
 * Checks names, ids and scopes (GS CIM 009, 4.5.1, 4.6.2 and 4.18; RFC 3987). An id keeps a device's hardware
 * identity verbatim, so the IRI grammar is its only restriction.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { type JsonObject, own } from './json.ts'
import { badRequestData } from './ngsi-ld-problem.ts'

/**
 * As a value it deletes the member (GS CIM 009, 4.5.0, since 1.6). Only updates may contain it, and it
 * identifies nothing.
 */
export const ngsiLdNull = 'urn:ngsi-ld:null'

/**
 * JSON null is not a value in NGSI-LD; NGSI-LD Null removes a member.
 * @throws ngsi-ld.bad-request-data naming the first member that is null.
 */
export function refuseJsonNulls(members: JsonObject, prefix = ''): void {
  const found = Object.keys(members).find((name) => members[name] === null)
  if (found !== undefined)
    throw badRequestData(`null is not a value; use ${ngsiLdNull} to remove a member`, prefix + found)
}

const shortName = /^\p{L}[\p{L}\p{N}_]*$/u

/**
 * RFC 3987: a character of a path segment (`ipchar`), and characters allowed only in queries (`iprivate`).
 */
const segment = String.raw`[A-Za-z0-9\-._~!$&'\(\)*+,;=:@[[\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{EFFFD}]--[\s\p{Noncharacter_Code_Point}]]]|%[0-9A-Fa-f]{2}`
const privateUse = String.raw`[\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}]`
const scheme = '[A-Za-z][A-Za-z0-9+.\\-]*:'
/** Square brackets are allowed only around the IPv6 address of a host. */
const literalHost = String.raw`(?:\/\/(?:${segment})*\[[0-9A-Fa-f:.]+\](?=[\/?#:]|$))?`
const path = String.raw`(?:${segment}|\/)*`
const iri = new RegExp(
  String.raw`^${scheme}(?!$)${literalHost}${path}(?:\?(?:${segment}|[\/?]|${privateUse})*)?(?:#(?:${segment}|[\/?])*)?$`,
  'v',
)
/** Fast path: matches most ids without the full grammar. */
const plainIri = /^[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9\-._~!$&'()*+,;=:@/]+$/
/**
 * Expanded names come from clients' @contexts, so only their characters are checked against the IRI grammar.
 */
const iriName = /^[A-Za-z][A-Za-z0-9+.-]*:[^\s\p{Cc}<>"{}|\\^`]+$/u
const scopePath = /^\/?[\p{L}\p{N}_-]+(?:\/[\p{L}\p{N}_-]+)*$/u

const namesAuthority = /^[^:]*:\/\//
/** An authority: user information, a host, and a numeric port (RFC 3987, 2.2). */
const authority = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/(?:[^@/?#]*@)?(?:\[[^\]]*\]|[^:@/?#]*)(?::\d*)?(?=[/?#]|$)/

/** Whether a text is an IRI (RFC 3987) with a scheme and a non-empty rest. */
export const isUri = (text: string): boolean =>
  (plainIri.test(text) || iri.test(text)) && (!namesAuthority.test(text) || authority.test(text))

/** @throws ngsi-ld.bad-request-data unless `value` is a URI of bounded length, and not NGSI-LD Null. */
export function checkUri(value: Json | undefined, field: string): string {
  if (typeof value === 'string' && value.length > limits.uriCharactersMax.value) {
    throw badRequestData(`is longer than ${limits.uriCharactersMax.value} characters`, field)
  }
  if (value === ngsiLdNull) throw badRequestData(`${ngsiLdNull} is not allowed here`, field)
  if (typeof value === 'string' && isUri(value)) return value
  throw badRequestData('must be a URI', field)
}

/**
 * The id or type of a JSON-LD object, with or without the leading `@`; null if the member is null.
 * @throws ngsi-ld.bad-request-data for an object with both forms (JSON-LD: colliding keywords).
 */
export function keyword(object: JsonObject, name: 'id' | 'type'): Json | undefined {
  const other = own(object, `@${name}`)
  if (!Object.hasOwn(object, name)) return other
  if (other !== undefined) throw badRequestData(`@${name} and ${name} cannot be used together`, `@${name}`)
  return object[name]
}

/**
 * @param name canonical name (see core-context.ts) of an attribute or type.
 * @throws ngsi-ld.bad-request-data unless the name is a URI, or consists of letters, digits and underscores.
 */
export function checkName(name: string, field: string): string {
  if (name.length > limits.nameCharactersMax.value) {
    throw badRequestData(`name longer than ${limits.nameCharactersMax.value} characters`, field.slice(0, 64))
  }
  if (name === ngsiLdNull) throw badRequestData(`${ngsiLdNull} is not allowed here`, field)
  if (shortName.test(name) || iriName.test(name)) return name
  throw badRequestData('must be a URI, or a letter followed by letters, digits and underscores', field)
}

/**
 * Members of entities and attributes that the core @context defines and that are not attributes (GS CIM 009,
 * 4.5.1): non-reified properties, and the members that carry an attribute's value. An entity's attribute may
 * not have such a name.
 */
const nonReified: ReadonlySet<string> = new Set([
  ...['createdAt', 'modifiedAt', 'deletedAt', 'expiresAt', 'observedAt', 'lastUsedAt'],
  ...['datasetId', 'instanceId', 'unitCode', 'valueType', 'objectType', 'lang'],
  ...['entityIdSealed', 'entityTypeSealed', 'coordinates'],
  ...['value', 'object', 'languageMap', 'vocab', 'json', 'valueList', 'objectList'],
  ...['previousValue', 'previousObject', 'previousLanguageMap', 'previousVocab', 'previousJson'],
  ...['previousValueList', 'previousObjectList', 'entity', 'entityList'],
])

/**
 * @param name canonical name of an attribute of an entity.
 * @throws ngsi-ld.bad-request-data also for non-reified properties of the core @context.
 */
export function checkAttributeName(name: string, field: string): string {
  if (nonReified.has(name))
    throw badRequestData('is a non-reified member of the core @context and cannot be an attribute', field)
  return checkName(name, field)
}

/**
 * @throws ngsi-ld.bad-request-data if `attrs` lists `id` or `type`, which are not attributes; `pick` may list
 * them.
 */
export function checkListedName(name: string, field: string): string {
  if (name === 'id' || name === 'type')
    throw badRequestData(`${name} is not an attribute; use pick to select members of entities`, field)
  return checkName(name, field)
}

/**
 * One scope or several. The leading slash is optional in the input (4.18) and always present in the result.
 * @throws ngsi-ld.bad-request-data unless `value` is a path such as `/building/floor`, or a list of them.
 */
export function checkScope(value: Json, field = 'scope'): string | readonly string[] {
  const paths = Array.isArray(value) ? (value as readonly Json[]) : [value]
  const valid = paths.length > 0 && paths.every((path) => typeof path === 'string' && scopePath.test(path))
  if (!valid) throw badRequestData('must be a path such as /building/floor, or a list of them', field)
  const scopes = (paths as readonly string[]).map((path) => (path.startsWith('/') ? path : `/${path}`))
  return scopes.length === 1 ? scopes[0]! : scopes
}
