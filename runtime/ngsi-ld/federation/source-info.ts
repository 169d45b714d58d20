/**
 * Options of a registration for requests to its source [NGSI-LD 5.2.9, 4.3.6.6]. The @context, the media type
 * of bodies and the version of the standard have keys of their own; all other keys are headers. Headers of
 * the connection are rejected; the gateway writes Via and Content-Type itself for each request.
 */

import type { Json } from '#contract/pipeline.ts'
import { minorOf } from '#ngsi-ld/representation/conformance.ts'
import { isConnectionHeader, isHeaderName, isHeaderValue } from '#ngsi-ld/values/header-text.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { KeyValue } from '#ngsi-ld/values/secrets.ts'
import type { Registration } from './registration.ts'

/** As a value: use the value of the request that is forwarded. */
const asRequested = 'urn:ngsi-ld:request'

export interface SourceOptions {
  /** Address of the @context for names. */
  readonly jsonldContext?: string
  readonly contentType?: string
  /** The number after the `1.` of the newest version that the source supports. */
  readonly minor?: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

/** `incoming` are the headers of the request to forward, names in lower case. */
export function sourceOptionsOf(
  { contextSourceInfo = [] }: Registration,
  incoming: Readonly<Record<string, string | readonly string[] | undefined>>,
): SourceOptions {
  const headers: Record<string, string> = {}
  const special: Record<string, string> = {}
  for (const { key, value } of contextSourceInfo) {
    if (Object.hasOwn(specialKeys, key)) {
      // Requests are forwarded as requested by default.
      if (value !== asRequested) special[key] = value
      continue
    }
    const name = key.toLowerCase()
    const given = value === asRequested ? incoming[name] : value
    if (typeof given === 'string' && !isConnectionHeader(name) && !ownHeaders.has(name)) headers[name] = given
  }
  const { jsonldContext, contentType, ngsildConformance } = special
  const minor = ngsildConformance === undefined ? undefined : minorOf(ngsildConformance)
  return {
    headers,
    ...(jsonldContext === undefined ? {} : { jsonldContext }),
    ...(contentType === undefined ? {} : { contentType }),
    ...(minor === undefined ? {} : { minor }),
  }
}

/** The gateway writes these for each request, regardless of the registration. */
const ownHeaders: ReadonlySet<string> = new Set(['content-type', 'via', 'ngsild-tenant'])

/** Validation of a key's value, and a description of valid values. */
const specialKeys: Readonly<Record<string, readonly [is: (value: string) => boolean, what: string]>> = {
  jsonldContext: [(value) => /^https?:\/\//i.test(value) && URL.canParse(value), 'an http or https URL'],
  contentType: [
    (value) => value === 'application/json' || value === 'application/ld+json',
    'application/json or application/ld+json',
  ],
  ngsildConformance: [(value) => minorOf(value) !== undefined, 'a version such as 1.6'],
}

/** @throws GatewayError ngsi-ld.bad-request-data */
export function parseSourceInfo(value: Json): readonly KeyValue[] {
  const field = 'contextSourceInfo'
  if (!Array.isArray(value)) throw badRequestData('must be an array of {key, value}', field)
  return (value as readonly Json[]).map((pair) => {
    if (!isObject(pair)) throw badRequestData('must be an array of {key, value}', field)
    const { key, value: given } = pair
    if (!isHeaderName(key)) throw badRequestData('must be a header name', `${field}.key`)
    if (isConnectionHeader(key))
      throw badRequestData(`${key} is set by the gateway and cannot be given`, `${field}.key`)
    // The tenant of a source has its own member (GS CIM 009, 4.3.6.5).
    if (key.toLowerCase() === 'ngsild-tenant')
      throw badRequestData('cannot set the tenant of the source; use the member tenant', `${field}.${key}`)
    if (!isHeaderValue(given) || given === '')
      throw badRequestData('must be a header value', `${field}.value`)
    const [is, what] = Object.hasOwn(specialKeys, key) ? specialKeys[key]! : []
    if (is !== undefined && given !== asRequested && !is(given))
      throw badRequestData(`must be ${what}, or ${asRequested}`, `${field}.${key}`)
    return { key, value: given }
  })
}
