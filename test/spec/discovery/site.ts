/** Entities of a small site, linked as sensor integration links them; names are full IRIs. */
export const iri = {
  IotStream: 'http://purl.org/iot/ontology/iot-stream#IotStream',
  Sensor: 'http://www.w3.org/ns/sosa/Sensor',
  Platform: 'http://www.w3.org/ns/sosa/Platform',
  ObservableProperty: 'http://www.w3.org/ns/sosa/ObservableProperty',
  StreamObservation: 'http://purl.org/iot/ontology/iot-stream#StreamObservation',
  Quality: 'https://w3id.org/iot/qoi#Quality',
  Point: 'http://www.w3.org/2003/01/geo/wgs84_pos#Point',
  generatedBy: 'http://purl.org/iot/ontology/iot-stream#generatedBy',
  belongsTo: 'http://purl.org/iot/ontology/iot-stream#belongsTo',
  observes: 'http://www.w3.org/ns/sosa/observes',
  isHostedBy: 'http://www.w3.org/ns/sosa/isHostedBy',
  hasSimpleResult: 'http://www.w3.org/ns/sosa/hasSimpleResult',
  hasQuality: 'https://w3id.org/iot/qoi#hasQuality',
  completeness: 'https://w3id.org/iot/qoi#completeness',
  hasRatedValue: 'https://w3id.org/iot/qoi#hasRatedValue',
  hasAbsoluteValue: 'https://w3id.org/iot/qoi#hasAbsoluteValue',
  geoLocation: 'http://www.w3.org/2003/01/geo/wgs84_pos#location',
  relativeLocation: 'http://purl.oclc.org/NET/UNIS/fiware/iot-lite#relativeLocation',
  label: 'http://www.w3.org/2000/01/rdf-schema#label',
} as const

const to = (object: string) => ({ type: 'Relationship', object })
const value = (given: unknown) => ({ type: 'Property', value: given })
export const place = (coordinates: readonly [number, number]) => ({
  type: 'GeoProperty',
  value: { type: 'Point', coordinates },
})

export const stream = (i: number) => ({
  id: `urn:ngsi-ld:IotStream:${i}`,
  type: iri.IotStream,
  [iri.generatedBy]: to(`urn:ngsi-ld:Sensor:${i}`),
  [iri.hasQuality]: to(`urn:ngsi-ld:QoI:${i}`),
})

export const sensor = (i: number, at?: readonly [number, number]) => ({
  id: `urn:ngsi-ld:Sensor:${i}`,
  type: iri.Sensor,
  ...(at && { location: place(at) }),
  [iri.observes]: to('urn:ngsi-ld:ObservableProperty:temperature'),
  [iri.geoLocation]: to(`urn:ngsi-ld:Point:${i}`),
})

export const quality = (i: number, rated: number) => ({
  id: `urn:ngsi-ld:QoI:${i}`,
  type: iri.Quality,
  [iri.completeness]: {
    ...value('NA'),
    [iri.hasRatedValue]: value(rated),
    [iri.hasAbsoluteValue]: value(rated * 100),
  },
})

export const property = (label: string) => ({
  id: `urn:ngsi-ld:ObservableProperty:${label}`,
  type: iri.ObservableProperty,
  [iri.label]: value(label),
})

export const roomPoint = (i: number) => ({
  id: `urn:ngsi-ld:Point:${i}`,
  type: iri.Point,
  [iri.relativeLocation]: value(`Room ${i}`),
})
