/**
 * The vocabulary of the index: indexed entity types, each with its bit, and the relationships between them.
 * Names are canonical full IRIs, because the core context has no terms for them.
 */

const sosa = 'http://www.w3.org/ns/sosa/'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const qoi = 'https://w3id.org/iot/qoi#'
const geo = 'http://www.w3.org/2003/01/geo/wgs84_pos#'
const schema = 'http://schema.org/'
const rdfs = 'http://www.w3.org/2000/01/rdf-schema#'

/** Bits of types; the node of an entity with several types has several. */
export const kinds = {
  stream: 1,
  sensor: 2,
  quality: 4,
  point: 8,
  property: 16,
  platform: 32,
  /** Stored without documents, only to know when a stream was last seen. */
  observation: 64,
} as const

export type KindName = keyof typeof kinds
export const kindNames = Object.keys(kinds) as readonly KindName[]

/** Kinds that the index itself answers queries for. */
export const searchable =
  kinds.stream | kinds.sensor | kinds.quality | kinds.point | kinds.property | kinds.platform

const kindOfType: ReadonlyMap<string, number> = new Map([
  [`${iotStream}IotStream`, kinds.stream],
  // Spelling of some older clients.
  [`${iotStream}IoTStream`, kinds.stream],
  [`${sosa}Sensor`, kinds.sensor],
  [`${qoi}Quality`, kinds.quality],
  [`${geo}Point`, kinds.point],
  [`${sosa}ObservableProperty`, kinds.property],
  [`${sosa}Platform`, kinds.platform],
  [`${iotStream}StreamObservation`, kinds.observation],
])

/** Canonical names of the indexed types. */
export const indexedTypes: ReadonlySet<string> = new Set(kindOfType.keys())

/** The bit of a type; 0 if it is not indexed. */
export const kindOf = (type: string): number => kindOfType.get(type) ?? 0

/** The bits of an entity's types. */
export const kindsOf = (types: readonly string[]): number =>
  types.reduce((all, type) => all | kindOf(type), 0)

/** Relationships along which entities inherit places and words. */
export const paths = {
  generatedBy: `${iotStream}generatedBy`,
  isHostedBy: `${sosa}isHostedBy`,
  observes: `${sosa}observes`,
  streamObserves: `${iotStream}observes`,
  relativePlace: `${geo}location`,
  belongsTo: `${iotStream}belongsTo`,
  madeBySensor: `${sosa}madeBySensor`,
} as const

/** Relationships to indexed types, which paths may follow. */
export const followed: ReadonlySet<string> = new Set([
  ...Object.values(paths),
  `${sosa}isObservedBy`,
  `${sosa}hosts`,
  `${qoi}hasQuality`,
  `${iotStream}derivedFrom`,
])

export const hasRatedValue = `${qoi}hasRatedValue`
/** "Unknown" in quality attributes; the rated value is a sub-attribute. */
export const notAvailable = 'NA'

export const relativeLocation = 'http://purl.oclc.org/NET/UNIS/fiware/iot-lite#relativeLocation'
export const simpleResult = `${sosa}hasSimpleResult`
export const resultTime = `${sosa}resultTime`
export const streamStart = `${iotStream}streamStart`
export const streamEnd = `${iotStream}streamEnd`

/** Attributes whose text is searched for words. */
export const wordy: readonly string[] = [
  `${rdfs}label`,
  `${rdfs}comment`,
  `${schema}name`,
  `${schema}description`,
  'name',
  'label',
  'title',
  'description',
  'comment',
  'http://purl.org/dc/terms/title',
  'http://purl.org/dc/terms/description',
  relativeLocation,
  'http://www.agtinternational.com/ontologies/ngsi-ld#alternativeType',
]
