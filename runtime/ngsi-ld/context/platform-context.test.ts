/** The platform's own context: every prefix and every term with one meaning. */
import { describe, expect, it } from 'vitest'
import { compilePlatformContext, platformContextDocument } from './platform-context.ts'

const url = 'http://127.0.0.1:9090/context.jsonld'
const { expand, compact, reference } = compilePlatformContext(url)

const stream = 'http://purl.org/iot/ontology/iot-stream#'
const sosa = 'http://www.w3.org/ns/sosa/'
const qoi = 'https://w3id.org/iot/qoi#'

const terms: Readonly<Record<string, string>> = {
  ...prefixed(
    stream,
    'IotStream StreamObservation Event generatedBy belongsTo detectedFrom windowStart windowEnd',
  ),
  ...prefixed(stream, 'derivedFrom providedBy analysedBy streamStart streamEnd'),
  ...prefixed(sosa, 'Sensor Platform ObservableProperty Actuator isObservedBy madeObservation madeBySensor'),
  ...prefixed(sosa, 'observedProperty hasSimpleResult resultTime hosts isHostedBy'),
  ...prefixed(
    qoi,
    'Quality hasQuality hasAbsoluteValue hasRatedValue plausibility completeness age frequency',
  ),
  ...prefixed(qoi, 'timeliness artificiality concordance updateinterval unit valuetype regexp'),
  ...prefixed('https://w3id.org/iot/fd/', 'hasVerdict hasEstimatedResult'),
  System: 'http://www.w3.org/ns/ssn/System',
  relativeLocation: 'http://purl.oclc.org/NET/UNIS/fiware/iot-lite#relativeLocation',
  rankScore: 'http://iotcrawler.eu/rankScore',
  alternativeType: 'http://www.agtinternational.com/ontologies/ngsi-ld#alternativeType',
  dataProvider: 'http://www.agtinternational.com/ontologies/RichIoTStream#DataProvider',
  name: 'http://schema.org/name',
  label: 'http://www.w3.org/2000/01/rdf-schema#label',
}

function prefixed(iri: string, names: string): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [name, iri + name]))
}

const prefixes: Readonly<Record<string, string>> = {
  sosa,
  qoi,
  'iot-stream': stream,
  ssn: 'http://www.w3.org/ns/ssn/',
  qoi2: 'http://purl.oclc.org/NET/UASO/qoi2#',
  geo: 'http://www.w3.org/2003/01/geo/wgs84_pos#',
  'iot-lite': 'http://purl.oclc.org/NET/UNIS/fiware/iot-lite#',
  rdfs: 'http://www.w3.org/2000/01/rdf-schema#',
  fd: 'https://w3id.org/iot/fd/',
  faultdetection: 'https://faultdetection.org/fd#',
  'fault-detection': 'http://www.fault-detection.de/',
  schema: 'http://schema.org/',
  qu: 'http://purl.oclc.org/NET/ssnx/qu/qu#',
  'extended-iot-stream': 'http://purl.org/iot/ontology/extended-iot-stream#',
  siemens: 'http://www.siemens.com/iotcrawler/ontologies#',
  devices: 'http://www.agtinternational.com/ontologies/devices#',
}

describe('the platform context', () => {
  it.each(Object.entries(terms))('knows %s', (term, iri) => {
    expect(expand(term)).toBe(iri)
    expect(compact(iri)).toBe(term)
  })

  it.each(Object.entries(prefixes))('knows the prefix %s', (prefix, iri) => {
    expect(expand(`${prefix}:unheardOf`)).toBe(`${iri}unheardOf`)
    expect(compact(`${iri}unheardOf`)).toBe(`${prefix}:unheardOf`)
  })

  it('distinguishes the two meanings of observes, and does not redefine core terms', () => {
    expect(compact(`${stream}observes`)).toBe('iot-stream:observes')
    expect(compact(`${sosa}observes`)).toBe('sosa:observes')
    expect([expand('location'), expand('min'), compact(`${qoi}min`)]).toEqual(['location', 'min', 'qoi:min'])
  })

  it('is one document, referred to by its address', () => {
    expect(reference[0]).toBe(url)
    expect(reference).toHaveLength(2)
    expect(JSON.stringify(platformContextDocument)).not.toContain('uri.etsi.org')
  })
})
