/**
 * Ids in paths: read from requests, written into Location. Ids and names may contain slashes: a Service's id
 * contains a topic, and every full IRI has slashes. Paths with unencoded slashes are understood, too.
 */
import { checkUri } from '#ngsi-ld/values/names.ts'
import type { HttpContext } from './body.ts'

/** The id in the path of a request. @throws ngsi-ld.bad-request-data if it is not a URI. */
export function idOf(c: HttpContext): string {
  return checkUri(c.req.param('id'), 'id')
}

/** The parts of a resource's address: the path, the id from its scheme on, and an attribute name. */
const resource =
  /^([^?]*?\/ngsi-ld\/v1\/(?:entities|temporal\/entities|subscriptions|csourceRegistrations|csourceSubscriptions|types|attributes|jsonldContexts)\/)([a-z][a-z0-9+.-]*:[^?]+?)(?:(\/attrs)(?:\/([^?]+?))?)?\/?(\?.*)?$/i

/** Encodes the slashes of the id and the attribute name in a URL; undefined if nothing changes. */
export function withSlashesEncoded(url: string): string | undefined {
  const found = resource.exec(url)
  if (found === null) return undefined
  const [, start, id, attrs = '', name, query = ''] = found
  const encoded = (text: string): string => text.replaceAll('/', '%2F')
  const meant = start! + encoded(id!) + attrs + (name === undefined ? '' : `/${encoded(name)}`)
  return meant.length > url.length - query.length ? meant + query : undefined
}

/** Encodes an id as a path segment, leaving characters that a segment may contain [RFC 3986 3.3]. */
export function pathSegment(id: string): string {
  return encodeURIComponent(id).replace(/%(?:3A|40|24|26|2B|2C|3B|3D)/g, decodeURIComponent)
}
