/**
 * What a registration says of how its source wants to be asked [NGSI-LD 5.2.9, 4.3.6.6]: the context of names, the
 * media type of bodies and the version of the standard have keys of their own, all other keys are headers. Headers of
 * the connection are refused; Via and Content-Type are written for each request and never taken from here.
 */
import type { Json } from '#contract/pipeline.ts'
import { minorOf } from '#ngsi-ld/representation/conformance.ts'
import { isConnectionHeader, isHeaderName, isHeaderValue } from '#ngsi-ld/values/header-text.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { HeaderPair, Registration } from './registration.ts'

/** As a value: whatever the request brought that is passed on. */
const asRequested = 'urn:ngsi-ld:request'

export interface SourceWishes {
  /** Address of the @context of names. */
  readonly jsonldContext?: string
  readonly contentType?: string
  /** The number behind the `1.` of the newest version that the source speaks. */
  readonly minor?: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

/** `incoming` are the headers of the request that is passed on, names in lower case. */
export function wishesOf(
  { contextSourceInfo = [] }: Registration,
  incoming: Readonly<Record<string, string | readonly string[] | undefined>>,
): SourceWishes {
  const headers: Record<string, string> = {}
  const special: Record<string, string> = {}
  for (const { key, value } of contextSourceInfo) {
    if (Object.hasOwn(specialKeys, key)) {
      // As requested is how requests are passed on anyway.
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

/** Written for each request, whatever the registration says. */
const ownHeaders: ReadonlySet<string> = new Set(['content-type', 'via', 'ngsild-tenant'])

/** Whether a value may stand beside a key, and what it must be else. */
const specialKeys: Readonly<Record<string, readonly [is: (value: string) => boolean, what: string]>> = {
  jsonldContext: [(value) => /^https?:\/\//i.test(value) && URL.canParse(value), 'an http or https URL'],
  contentType: [
    (value) => value === 'application/json' || value === 'application/ld+json',
    'application/json or application/ld+json',
  ],
  ngsildConformance: [(value) => minorOf(value) !== undefined, 'a version such as 1.6'],
}

/** @throws GatewayError ngsi-ld.bad-request-data */
export function parseSourceInfo(value: Json): readonly HeaderPair[] {
  const field = 'contextSourceInfo'
  if (!Array.isArray(value)) throw badRequestData('must be an array of {key, value}', field)
  return (value as readonly Json[]).map((pair) => {
    if (!isObject(pair)) throw badRequestData('must be an array of {key, value}', field)
    const { key, value: given } = pair
    if (!isHeaderName(key)) throw badRequestData('is not a header name', `${field}.key`)
    if (isConnectionHeader(key)) throw badRequestData(`${key} cannot be set`, `${field}.key`)
    // The tenant of a source is a member of its own (GS CIM 009, 4.3.6.5).
    if (key.toLowerCase() === 'ngsild-tenant')
      throw badRequestData('cannot set the tenant of the source; use the member tenant', `${field}.${key}`)
    if (!isHeaderValue(given) || given === '') throw badRequestData('is not a header value', `${field}.value`)
    const [is, what] = Object.hasOwn(specialKeys, key) ? specialKeys[key]! : []
    if (is !== undefined && given !== asRequested && !is(given))
      throw badRequestData(`must be ${what}, or ${asRequested}`, `${field}.${key}`)
    return { key, value: given }
  })
}
