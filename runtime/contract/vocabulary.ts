/**
 * The IRIs of the sensor model as constants. Each is a full IRI, which is also its core-compacted form,
 * because none is a term of the NGSI-LD core context. The published @context document has the short terms.
 */

const prefixes = {
  sosa: 'http://www.w3.org/ns/sosa/',
  'iot-stream': 'http://purl.org/iot/ontology/iot-stream#',
  qoi: 'https://w3id.org/iot/qoi#',
  'iot-lite': 'http://purl.oclc.org/NET/UNIS/fiware/iot-lite#',
  rdfs: 'http://www.w3.org/2000/01/rdf-schema#',
  schema: 'http://schema.org/',
  fd: 'https://w3id.org/iot/fd/',
  faultdetection: 'https://faultdetection.org/fd#',
  dcterms: 'http://purl.org/dc/terms/',
  /**
   * Names that no public vocabulary has: the topic of a source, the clock of a time, the origin of a figure.
   */
  selvedge: 'urn:selvedge:ns:',
} as const

type Prefix = keyof typeof prefixes
const named = <P extends Prefix, Name extends string>(
  prefix: P,
  name: Name,
): `${(typeof prefixes)[P]}${Name}` => `${prefixes[prefix]}${name}`

export const sosa = {
  Platform: named('sosa', 'Platform'),
  Sensor: named('sosa', 'Sensor'),
  ObservableProperty: named('sosa', 'ObservableProperty'),
  hosts: named('sosa', 'hosts'),
  isHostedBy: named('sosa', 'isHostedBy'),
  observes: named('sosa', 'observes'),
  isObservedBy: named('sosa', 'isObservedBy'),
  madeObservation: named('sosa', 'madeObservation'),
  madeBySensor: named('sosa', 'madeBySensor'),
  observedProperty: named('sosa', 'observedProperty'),
  hasSimpleResult: named('sosa', 'hasSimpleResult'),
  resultTime: named('sosa', 'resultTime'),
} as const

export const iotStream = {
  IotStream: named('iot-stream', 'IotStream'),
  StreamObservation: named('iot-stream', 'StreamObservation'),
  generatedBy: named('iot-stream', 'generatedBy'),
  observes: named('iot-stream', 'observes'),
  belongsTo: named('iot-stream', 'belongsTo'),
  providedBy: named('iot-stream', 'providedBy'),
  Event: named('iot-stream', 'Event'),
  label: named('iot-stream', 'label'),
  windowStart: named('iot-stream', 'windowStart'),
  windowEnd: named('iot-stream', 'windowEnd'),
  detectedFrom: named('iot-stream', 'detectedFrom'),
  derivedFrom: named('iot-stream', 'derivedFrom'),
} as const

export const qoi = {
  Quality: named('qoi', 'Quality'),
  plausibility: named('qoi', 'plausibility'),
  hasRatedValue: named('qoi', 'hasRatedValue'),
  hasQuality: named('qoi', 'hasQuality'),
  updateinterval: named('qoi', 'updateinterval'),
  unit: named('qoi', 'unit'),
  valuetype: named('qoi', 'valuetype'),
  min: named('qoi', 'min'),
  max: named('qoi', 'max'),
  regexp: named('qoi', 'regexp'),
} as const

export const iotLite = {
  Service: named('iot-lite', 'Service'),
  endpoint: named('iot-lite', 'endpoint'),
  interfaceType: named('iot-lite', 'interfaceType'),
} as const

export const rdfsLabel = named('rdfs', 'label')
export const schemaName = named('schema', 'name')
/** Unit as text, when no UN/CEFACT code is known. */
export const schemaUnitText = named('schema', 'unitText')
/** Media type of a source's data. */
export const dctermsFormat = named('dcterms', 'format')
/** MQTT topic (or HTTP path) on which a source sends. */
export const selvedgeTopic = named('selvedge', 'topic')
/** Where an AMQP source sends: a queue, or an exchange with a routing key. */
export const selvedgeQueue = named('selvedge', 'queue')
export const selvedgeExchange = named('selvedge', 'exchange')
/** The observation entity of a stream at an NGSI-LD source. */
export const selvedgeEntity = named('selvedge', 'entity')
export const selvedgeRoutingKey = named('selvedge', 'routingKey')
/** The field of a payload that a stream observes. */
export const selvedgeField = named('selvedge', 'field')
/** Sub-property of a result: the clock of its time, `device`, `network` or `gateway`. */
export const selvedgeTimeSource = named('selvedge', 'timeSource')
/**
 * Sub-property of qoi:updateinterval: `declared` by a person or the device, or `learnt` from observations.
 */
export const selvedgeBasis = named('selvedge', 'basis')
/** Attributes that fault detection writes, and the one that opts a Sensor out. */
export const fd = {
  hasVerdict: named('fd', 'hasVerdict'),
  hasEstimatedResult: named('fd', 'hasEstimatedResult'),
  enable: named('faultdetection', 'enable'),
} as const
export const faultTerms = {
  Fault: named('selvedge', 'Fault'),
  stream: named('selvedge', 'stream'),
  sensor: named('selvedge', 'sensor'),
  class: named('selvedge', 'class'),
  kind: named('selvedge', 'kind'),
  likelihood: named('selvedge', 'likelihood'),
  begin: named('selvedge', 'begin'),
  end: named('selvedge', 'end'),
  method: named('selvedge', 'method'),
  model: named('selvedge', 'model'),
  hash: named('selvedge', 'hash'),
  state: named('selvedge', 'state'),
  error: named('selvedge', 'error'),
  period: named('selvedge', 'period'),
  maxRate: named('selvedge', 'maxRate'),
} as const
/** How certain the label of an Event is, 0 to 1. */
export const selvedgeConfidence = named('selvedge', 'confidence')

/** "Unknown" in every qoi attribute. */
export const notAvailable = 'NA'
