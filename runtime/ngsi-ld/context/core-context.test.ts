/** Canonical names and core addresses, checked against every published core @context. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { CoreVersion } from '#ngsi-ld/values/profile.ts'
import { canonicalOf, coreContextUrl, coreTerms, isCoreContextUrl, toIri } from './core-context.ts'

const versions: readonly CoreVersion[] = ['1.0', '1.3', '1.4', '1.5', '1.6', '1.7', '1.8', '1.9']

describe('core addresses', () => {
  it.each([
    ...versions.map((version) => coreContextUrl(version)),
    ...versions.map((version) => coreContextUrl(version).replace('https', 'http')),
    'https://www.uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld',
    'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.6.1.jsonld',
    'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context',
    'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld/',
    'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld#',
    'https://uri.etsi.org/ngsi-ld/coreContext',
    'https://forge.etsi.org/gitlab/NGSI-LD/NGSI-LD/raw/master/coreContext/ngsi-ld-core-context.json',
    'https://forge.etsi.org/rep/NGSI-LD/NGSI-LD/-/raw/1.3.1/coreContext/ngsi-ld-core-context.jsonld',
  ])('%s is built in', (url) => expect(isCoreContextUrl(url)).toBe(true))

  it.each([
    'https://uri.etsi.org/ngsi-ld/v1/other.jsonld',
    'https://uri.etsi.org.example.com/ngsi-ld/v1/ngsi-ld-core-context.jsonld',
    'https://example.com/uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld',
    'ftp://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld',
    'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld?x=1',
  ])('%s is not', (url) => expect(isCoreContextUrl(url)).toBe(false))

  it('of version 1.0 has no version', () =>
    expect(coreContextUrl('1.0')).toBe('https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld'))
})

describe('the core', () => {
  it('gives each term an IRI of its own', () => {
    expect(coreTerms.size).toBeGreaterThan(200)
    expect(new Set(coreTerms.values()).size).toBe(coreTerms.size)
  })

  it('has the meaning of all older versions, except for changed terms', () => {
    const differing = new Set<string>()
    for (const version of versions) {
      const text = readFileSync(join(import.meta.dirname, 'core-context', `v${version}.json`), 'utf8')
      const { '@context': terms } = JSON.parse(text) as {
        '@context': Record<string, string | { '@id': string }>
      }
      for (const [term, definition] of Object.entries(terms)) {
        if (term.startsWith('@')) continue
        const id = typeof definition === 'string' ? definition : definition['@id']
        const prefixes = { 'ngsi-ld:': coreTerms.get('ngsi-ld')!, 'geojson:': coreTerms.get('geojson')! }
        const found = Object.entries(prefixes).find(([prefix]) => id.startsWith(prefix))
        const iri = found === undefined ? id : found[1] + id.slice(found[0].length)
        if (coreTerms.get(term) !== iri) differing.add(`${term} of ${version}`)
      }
    }
    expect([...differing].sort()).toEqual(
      [
        'VocabularyProperty of 1.7',
        'attributeCount of 1.4',
        'attributeCount of 1.3',
        'attributeCount of 1.6',
        'attributeCount of 1.8',
        'attributeDetails of 1.3',
        'attributeDetails of 1.4',
        'attributeDetails of 1.6',
        'attributeDetails of 1.8',
        'coordinates of 1.0',
        'description of 1.0',
        'end of 1.0',
        'endTime of 1.0',
        'expires of 1.0',
        'geometry of 1.0',
        'geometryProperty of 1.8',
        'name of 1.0',
        'objectsLists of 1.8',
        'properties of 1.0',
        'relationships of 1.0',
        'start of 1.0',
        'time of 1.0',
        'title of 1.0',
      ].sort(),
    )
  })
})

describe('canonical names', () => {
  it.each([
    ['https://uri.etsi.org/ngsi-ld/location', 'location'],
    ['https://uri.etsi.org/ngsi-ld/hasValue', 'value'],
    ['http://purl.org/dc/terms/title', 'title'],
    ['https://uri.etsi.org/ngsi-ld/default-context/temperature', 'temperature'],
    ['http://www.w3.org/ns/sosa/Sensor', 'http://www.w3.org/ns/sosa/Sensor'],
    ['https://uri.etsi.org/ngsi-ld/unheardOf', 'https://uri.etsi.org/ngsi-ld/unheardOf'],
  ])('%s is called %s', (iri, name) => {
    expect(canonicalOf(iri)).toBe(name)
    expect(toIri(name)).toBe(iri)
  })

  it.each(['location', 'value', 'a:b', '', '__proto__', '@type'])(
    'of the default context never collide with other names: %s',
    (rest) => {
      const iri = `https://uri.etsi.org/ngsi-ld/default-context/${rest}`
      expect(canonicalOf(iri)).toBe(iri)
      expect(toIri(iri)).toBe(iri)
    },
  )
})
