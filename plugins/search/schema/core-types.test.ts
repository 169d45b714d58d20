/** The names in the platform's GraphQL types are names of its vocabularies. */
import { expect, it } from 'vitest'
import { platformContextDocument } from '#ngsi-ld/context/platform-context.ts'
import { coreTypes } from './core-types.ts'

/** Names without a term in the published @context: ambiguous ones, and those of older ontologies. */
const withoutTerm = [
  'http://purl.org/iot/ontology/iot-stream#IoTStream',
  'http://purl.org/iot/ontology/iot-stream#observes',
  'http://www.w3.org/ns/sosa/observes',
  'http://purl.oclc.org/NET/UASO/qoi2#hasQuality',
  'https://uri.etsi.org/ngsi-ld/location',
  'https://w3id.org/iot/qoi#min',
  'https://w3id.org/iot/qoi#max',
  'http://www.w3.org/ns/sosa/includes',
  'http://www.w3.org/ns/sosa/inferredHosts',
  'http://purl.oclc.org/NET/UASO/qoi2#Quality',
  'http://purl.org/iot/ontology/iot-stream#label',
]

it('has only names of the published @context and known exceptions', () => {
  type Terms = Readonly<Record<string, string | { readonly '@id': string }>>
  const context = (platformContextDocument as { readonly '@context': Terms })['@context']
  const idOf = (term: string): string | undefined => {
    const entry = context[term]
    return typeof entry === 'object' ? entry['@id'] : entry
  }
  const iris = new Set(
    Object.keys(context).map((term) => {
      const id = idOf(term)!
      const [prefix = '', name = ''] = id.split(/:(?!\/\/)/)
      return idOf(prefix) === undefined ? id : idOf(prefix) + name
    }),
  )
  const used = new Set([...coreTypes.matchAll(/"(https?:\/\/[^"]+)"/g)].map(([, iri]) => iri!))
  expect(used.size).toBeGreaterThan(50)
  expect([...used].filter((iri) => !iris.has(iri))).toEqual(withoutTerm)
})
