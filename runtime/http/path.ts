/**
 * Ids in paths: read from the request, written into Location.
 */
import { checkUri } from '#ngsi-ld/name.ts'
import type { HttpContext } from './body.ts'

/** The id in the path of a request. @throws ngsi-ld.bad-request-data when it is no URI. */
export function idOf(c: HttpContext): string {
  return checkUri(c.req.param('id'), 'id')
}

/** An id as a segment of a path: as it is, but for what a segment cannot hold [RFC 3986 3.3]. */
export function pathSegment(id: string): string {
  return encodeURIComponent(id).replace(/%(?:3A|40|24|26|2B|2C|3B|3D)/g, decodeURIComponent)
}
