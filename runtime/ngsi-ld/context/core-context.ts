/**
 * The core @context and the canonical names derived from it (GS CIM 009, 4.4 and annex B). A canonical name
 * is a core term, the bare name of a default-context term, or a full IRI; each IRI has exactly one canonical
 * name.
 *
 * The newest core determines names, whatever version a request refers to: an entity's names must not depend
 * on the address that a client happens to send. Terms that a newer version dropped belong to the default
 * context.
 */

import document from '#ngsi-ld/context/core-context/v1.9.json' with { type: 'json' }
import type { CoreVersion } from '#ngsi-ld/values/profile.ts'

export const defaultContextIri = 'https://uri.etsi.org/ngsi-ld/default-context/'

/** The published address of a core @context. */
export const coreContextUrl = (version: CoreVersion = '1.9'): string =>
  `https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context${version === '1.0' ? '' : `-v${version}`}.jsonld`

/**
 * Whether an address is that of a core @context in any version: http or https, with or without `www.`, `v1/`,
 * version, suffix, fragment or trailing slash, on uri.etsi.org or in the repositories of the ETSI forge.
 */
export const isCoreContextUrl = (url: string): boolean => coreAddress.test(url)

const coreAddress =
  /^https?:\/\/(?:(?:www\.)?uri\.etsi\.org(?::\d+)?\/ngsi-ld\/(?:v\d\/)?|forge\.etsi\.org\/(?:gitlab|rep)\/NGSI-LD\/NGSI-LD\/(?:-\/)?(?:raw|blob)\/[\w.-]+\/coreContext\/)(?:ngsi-ld-)?core-?context(?:-v?\d[\d.]*\d)?(?:\.jsonld|\.json)?\/?[#?]?$/i

/** Terms of the core with their IRIs; `id` and `type` represent the keywords `@id` and `@type`. */
export const coreTerms: ReadonlyMap<string, string> = readCore()

/** The prefixes that the core itself defines, with their IRIs. */
export const corePrefixes: ReadonlyMap<string, string> = new Map(
  ['ngsi-ld', 'geojson'].map((prefix) => [prefix, coreTerms.get(prefix)!]),
)

const termsByIri: ReadonlyMap<string, string> = new Map([...coreTerms].map(([term, iri]) => [iri, term]))

/** Canonical name of a full IRI or keyword. */
export function canonicalOf(iri: string): string {
  const term = termsByIri.get(iri)
  if (term !== undefined) return term
  if (!iri.startsWith(defaultContextIri)) return iri
  const name = iri.slice(defaultContextIri.length)
  return isDefaultName(name) ? name : iri
}

/** Full IRI of a canonical name. */
export const toIri = (name: string): string =>
  coreTerms.get(name) ?? (name.includes(':') ? name : defaultContextIri + name)

/** Whether the core context alone expands a bare name to the default-context term with this name. */
const isDefaultName = (name: string): boolean =>
  name !== '' && !name.includes(':') && !name.startsWith('@') && name !== '__proto__' && !coreTerms.has(name)

function readCore(): ReadonlyMap<string, string> {
  const context: Readonly<Record<string, unknown>> = document['@context']
  const iriOf = (id: string): string => {
    const colon = id.indexOf(':')
    const prefix = id.startsWith('http') ? undefined : context[id.slice(0, colon)]
    return typeof prefix === 'string' ? prefix + id.slice(colon + 1) : id
  }
  return new Map(
    Object.entries(context).flatMap(([term, definition]) => {
      if (term.startsWith('@')) return []
      const id = typeof definition === 'string' ? definition : (definition as { '@id': string })['@id']
      return [[term, iriOf(id)] as const]
    }),
  )
}
