/**
 * The @context document that the gateway itself publishes: the prefixes and terms of the platform's vocabulary, so
 * that clients may name one address instead of a dozen prefixes. It is served at the same path by every gateway and
 * resolves without a network, whatever the host in front of it. Terms of the NGSI-LD core stay what they are there;
 * of two IRIs with the same last word one has the short term, the other goes by its prefix (iot-stream:observes).
 */
import type { Json } from '#contract/pipeline.ts'
import { coreTerms } from '#ngsi-ld/core-context.ts'

export const platformContextPath = '/contexts/selvedge-platform.jsonld'

const prefixes = {
  sosa: 'http://www.w3.org/ns/sosa/',
  ssn: 'http://www.w3.org/ns/ssn/',
  'iot-stream': 'http://purl.org/iot/ontology/iot-stream#',
  'extended-iot-stream': 'http://purl.org/iot/ontology/extended-iot-stream#',
  'iot-lite': 'http://purl.oclc.org/NET/UNIS/fiware/iot-lite#',
  qoi: 'https://w3id.org/iot/qoi#',
  qoi2: 'http://purl.oclc.org/NET/UASO/qoi2#',
  qu: 'http://purl.oclc.org/NET/ssnx/qu/qu#',
  geo: 'http://www.w3.org/2003/01/geo/wgs84_pos#',
  rdfs: 'http://www.w3.org/2000/01/rdf-schema#',
  schema: 'http://schema.org/',
  fd: 'https://w3id.org/iot/fd/',
  siemens: 'http://www.siemens.com/iotcrawler/ontologies#',
  devices: 'http://www.agtinternational.com/ontologies/devices#',
} as const

const termsOfPrefix: Readonly<Partial<Record<keyof typeof prefixes, string>>> = {
  'iot-stream':
    'IotStream StreamObservation Event Analytics generatedBy belongsTo detectedFrom windowStart windowEnd' +
    ' derivedFrom providedBy analysedBy streamStart streamEnd',
  sosa:
    'Sensor Platform ObservableProperty Actuator observes isObservedBy madeObservation madeBySensor' +
    ' observedProperty hasSimpleResult resultTime hosts isHostedBy includes',
  ssn: 'System',
  qoi:
    'Quality hasQuality hasAbsoluteValue hasRatedValue plausibility completeness age frequency timeliness' +
    ' artificiality concordance min max updateinterval unit valuetype regexp',
  'iot-lite': 'Service relativeLocation interfaceType interfaceDescription',
  rdfs: 'label',
  schema: 'name',
  fd: 'hasVerdict hasEstimatedResult',
}

const singleTerms = {
  rankScore: 'http://iotcrawler.eu/rankScore',
  alternativeType: 'http://www.agtinternational.com/ontologies/ngsi-ld#alternativeType',
  dataProvider: 'http://www.agtinternational.com/ontologies/RichIoTStream#DataProvider',
  locations: 'http://www.agtinternational.com/ontologies/devices/locations',
  enable: 'https://faultdetection.org/fd#enable',
} as const

export const platformContextDocument: Json = { '@context': { ...prefixes, ...terms(), ...singleTerms } }

function terms(): Record<string, string> {
  const entries = Object.entries(termsOfPrefix).flatMap(([prefix, words]) =>
    words.split(' ').map((word) => [word, `${prefix}:${word}`] as const),
  )
  return Object.fromEntries(entries.filter(([word]) => !coreTerms.has(word)))
}
