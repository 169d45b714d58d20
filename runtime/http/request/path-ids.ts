/**
 * Ids in paths: read from the request, written into Location. Ids and names may have slashes, as the topic in the id
 * of a Service and every full IRI has; a path where they are not percent-encoded is understood all the same.
 */
import { checkUri } from '#ngsi-ld/values/names.ts'
import type { HttpContext } from './body.ts'

/** The id in the path of a request. @throws ngsi-ld.bad-request-data when it is no URI. */
export function idOf(c: HttpContext): string {
  return checkUri(c.req.param('id'), 'id')
}

/** Address of a resource, the id from its scheme on, and what may follow it. */
const resource =
  /^([^?]*?\/ngsi-ld\/v1\/(?:entities|temporal\/entities|subscriptions|csourceRegistrations|csourceSubscriptions|types|attributes|jsonldContexts)\/)([a-z][a-z0-9+.-]*:[^?]+?)(?:(\/attrs)(?:\/([^?]+?))?)?\/?(\?.*)?$/i

/** A URL with the slashes of its id and attribute name encoded; undefined where that changes nothing. */
export function withSlashesEncoded(url: string): string | undefined {
  const found = resource.exec(url)
  if (found === null) return undefined
  const [, start, id, attrs = '', name, query = ''] = found
  const encoded = (text: string): string => text.replaceAll('/', '%2F')
  const meant = start! + encoded(id!) + attrs + (name === undefined ? '' : `/${encoded(name)}`)
  return meant.length > url.length - query.length ? meant + query : undefined
}

/** An id as a segment of a path: as it is, but for what a segment cannot hold [RFC 3986 3.3]. */
export function pathSegment(id: string): string {
  return encodeURIComponent(id).replace(/%(?:3A|40|24|26|2B|2C|3B|3D)/g, decodeURIComponent)
}
