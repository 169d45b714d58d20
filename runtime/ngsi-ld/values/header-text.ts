/**
 * Characters allowed in HTTP headers [RFC 9110, 5.1 and 5.5]. Clients store header names and values that the
 * gateway sends later. They are checked when a client stores them, because at sending time no client waits
 * for an error.
 */
import type { Json } from '#contract/pipeline.ts'

export const isHeaderName = (value: Json | undefined): value is string =>
  typeof value === 'string' && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(value)

/** The value may be empty. */
export const isHeaderValue = (value: Json | undefined): value is string =>
  typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)

/**
 * Whether the connection or the body determines this header, in any letter case. A client may not set it for
 * requests that the gateway sends.
 */
export const isConnectionHeader = (name: string): boolean => connectionHeaders.test(name)

const connectionHeaders =
  /^(?:host|connection|proxy-connection|content-length|transfer-encoding|keep-alive|te|trailer|upgrade|expect)$/i
