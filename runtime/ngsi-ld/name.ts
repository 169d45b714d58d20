/**
 * Which texts may be names, ids and scopes (GS CIM 009, 4.6.2 and 4.18; RFC 3986). Ids keep the hardware identity
 * of a device verbatim, so nothing beyond a URI's own characters is asked of them.
 */
import { limits } from '#base/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { badRequestData } from './problem.ts'

/** In a value's place: delete it (GS CIM 009, 4.5.0, since 1.6). Only updates may say so, and it names nothing. */
export const ngsiLdNull = 'urn:ngsi-ld:null'

const shortName = /^\p{L}[\p{L}\p{N}_]*$/u
const uri = /^[A-Za-z][A-Za-z0-9+.-]*:[^\s\p{Cc}<>"{}|\\^`]+$/u
const scopePath = /^\/?[\p{L}\p{N}_-]+(?:\/[\p{L}\p{N}_-]+)*$/u

/** A scheme, a colon, and no character that RFC 3986 (and 3987 beyond ASCII) excludes. */
export const isUri = (text: string): boolean => uri.test(text)

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
 * @param name canonical name (see core-context.ts) of an attribute or type.
 * @throws ngsi-ld.bad-request-data when the name is neither a URI nor letters, digits and underscores.
 */
export function checkName(name: string, field: string): string {
  if (name.length > limits.nameCharactersMax.value) {
    throw badRequestData(`name longer than ${limits.nameCharactersMax.value} characters`, field.slice(0, 64))
  }
  if (name === ngsiLdNull) throw badRequestData(`${ngsiLdNull} is not allowed here`, field)
  if (shortName.test(name) || isUri(name)) return name
  throw badRequestData('a name is a letter followed by letters, digits and underscores, or a URI', field)
}

/**
 * A scope or several; the slash in front may be left out (4.18) and is kept with it.
 * @throws ngsi-ld.bad-request-data unless `value` is a path such as `/building/floor`, or a list of them.
 */
export function checkScope(value: Json, field = 'scope'): string | readonly string[] {
  const paths = Array.isArray(value) ? (value as readonly Json[]) : [value]
  const valid = paths.length > 0 && paths.every((path) => typeof path === 'string' && scopePath.test(path))
  if (!valid) throw badRequestData('must be a path such as /building/floor, or a list of them', field)
  const scopes = (paths as readonly string[]).map((path) => (path.startsWith('/') ? path : `/${path}`))
  return scopes.length === 1 ? scopes[0]! : scopes
}
