/**
 * What can stand in a header of HTTP [RFC 9110, 5.1 and 5.5]. Names and values that clients leave for requests of ours are
 * looked at by these when they are given, because later nobody is there who could be told.
 */
import type { Json } from '#contract/pipeline.ts'

export const isHeaderName = (value: Json | undefined): value is string =>
  typeof value === 'string' && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(value)

/** May be empty. */
export const isHeaderValue = (value: Json | undefined): value is string =>
  typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)

/** Headers that the connection or the body decides: no client may set them for requests of ours. In whatever case. */
export const isConnectionHeader = (name: string): boolean => connectionHeaders.test(name)

const connectionHeaders =
  /^(?:host|connection|proxy-connection|content-length|transfer-encoding|keep-alive|te|trailer|upgrade|expect)$/i
