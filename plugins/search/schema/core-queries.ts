/**
 * The GraphQL queries, subscriptions and inputs of the platform. Names and arguments of the original search
 * enabler are unchanged; new ones are added. Input fields have the names of the fields of the selected type.
 * All given conditions must hold (AND).
 */

export const coreQueries = `
type Query {
  streams(
    id: String, ids: [String!], filter: IoTStreamInput, alternativeType: String, ranking: [RankingCriteria],
    rankPoint: PointInput, rankDistance: Float, rankAge: Float,
    label: String, search: String, generatedBy: SensorInput, observes: ObservablePropertyInput, quality: QualityInput,
    dataProvider: String, near: NearInput, offset: Int = 0, limit: Int = 0
  ): [IoTStream]
  sensors(
    id: String, ids: [String!], filter: SensorInput, alternativeType: String, ranking: [RankingCriteria],
    rankPoint: PointInput, rankDistance: Float, rankAge: Float,
    label: String, search: String, madeObservation: StreamObservationInput, isHostedBy: PlatformInput,
    observes: ObservablePropertyInput, near: NearInput, offset: Int = 0, limit: Int = 0
  ): [Sensor]
  systems(
    id: String, ids: [String!], filter: SystemInput, alternativeType: String, ranking: [RankingCriteria],
    rankPoint: PointInput, rankDistance: Float, rankAge: Float,
    label: String, search: String, isHostedBy: PlatformInput, near: NearInput, offset: Int = 0, limit: Int = 0
  ): [System]
  platforms(
    id: String, ids: [String!], filter: PlatformInput, alternativeType: String, ranking: [RankingCriteria],
    rankPoint: PointInput, rankDistance: Float, rankAge: Float,
    label: String, search: String, hosts: SensorInput, near: NearInput, offset: Int = 0, limit: Int = 0
  ): [Platform]
  observableProperties(
    id: String, ids: [String!], filter: ObservablePropertyInput, alternativeType: String, label: String,
    search: String, offset: Int = 0, limit: Int = 0
  ): [ObservableProperty]
  streamObservations(
    id: String, ids: [String!], filter: StreamObservationInput, hasSimpleResult: SimpleResultFilter,
    alternativeType: String, madeBySensor: SensorInput, belongsTo: IoTStreamInput,
    observedProperty: ObservablePropertyInput, resultTime: TimeFilter, offset: Int = 0, limit: Int = 0
  ): [StreamObservation]
  qualities(
    id: String, ids: [String!], filter: QualityInput, stream: IoTStreamInput, offset: Int = 0, limit: Int = 0
  ): [Quality]
  events(
    id: String, ids: [String!], filter: EventInput, label: String, search: String, detectedFrom: IoTStreamInput,
    windowStart: TimeFilter, windowEnd: TimeFilter, offset: Int = 0, limit: Int = 0
  ): [Event]
}

"Each sends the entity in its current state after it was created or changed, or a value was observed."
type Subscription {
  streams(id: String, ids: [String!], filter: IoTStreamInput): IoTStream
  sensors(id: String, ids: [String!], filter: SensorInput): Sensor
  platforms(id: String, ids: [String!], filter: PlatformInput): Platform
  streamObservations(
    id: String, ids: [String!], filter: StreamObservationInput, belongsTo: IoTStreamInput,
    hasSimpleResult: SimpleResultFilter
  ): StreamObservation
  qualities(id: String, ids: [String!], filter: QualityInput): Quality
  events(id: String, ids: [String!], filter: EventInput): Event
  "Ids of entities that were deleted, of whatever type."
  deletions(id: String): String!
}

"A criterion of ranking: an attribute (IRI, prefixed or short name, or a path through links) and its weight."
input RankingCriteria {
  name: String
  value: Float
}

"The point where @proximity is 1; defaults to the point of near."
input PointInput @exclude {
  lon: Float!
  lat: Float!
}

"Within a distance of a point, in metres."
input NearInput @exclude {
  lon: Float!
  lat: Float!
  maxDistance: Float
  minDistance: Float
}

input FloatFilter @exclude {
  eq: Float
  neq: Float
  gt: Float
  gte: Float
  lt: Float
  lte: Float
  in: [Float!]
}

"Numbers with the six operators and in; texts with text, textNot and textIn."
input SimpleResultFilter @exclude {
  eq: Float
  neq: Float
  gt: Float
  gte: Float
  lt: Float
  lte: Float
  in: [Float!]
  text: String
  textNot: String
  textIn: [String!]
}

"DateTime in UTC, such as 2026-01-31T12:00:00Z."
input TimeFilter @exclude {
  eq: String
  gt: String
  gte: String
  lt: String
  lte: String
}

input MeasureInput @exclude {
  absolute: FloatFilter
  rated: FloatFilter
  value: FloatFilter
}

input SystemInput {
  id: String
  ids: [String!]
  label: String
  labelIn: [String!]
  search: String
  location: String
  isHostedBy: PlatformInput
  alternativeType: String
  near: NearInput
}

input IoTStreamInput {
  id: [String]
  label: String
  labelIn: [String!]
  search: String
  generatedBy: [SensorInput]
  observes: ObservablePropertyInput
  observation: StreamObservationInput
  quality: QualityInput
  alternativeType: String
  dataProvider: String
  near: NearInput
}

input SensorInput {
  id: String
  ids: [String!]
  label: String
  labelIn: [String!]
  search: String
  location: String
  isHostedBy: PlatformInput
  observes: ObservablePropertyInput
  madeObservation: StreamObservationInput
  alternativeType: String
  near: NearInput
  min: FloatFilter
  max: FloatFilter
  updateInterval: FloatFilter
}

input PlatformInput {
  id: String
  ids: [String!]
  label: String
  labelIn: [String!]
  search: String
  hosts: SensorInput
  location: String
  alternativeType: String
  near: NearInput
}

input ObservablePropertyInput {
  id: String
  ids: [String!]
  label: String
  labelIn: [String!]
  search: String
  isObservedBy: SensorInput
  alternativeType: String
}

input StreamObservationInput {
  id: String
  ids: [String!]
  belongsTo: IoTStreamInput
  madeBySensor: SensorInput
  observedProperty: ObservablePropertyInput
  alternativeType: String
  dataProvider: String @attribute(uri: "http://www.agtinternational.com/ontologies/RichIoTStream#DataProvider")
  hasSimpleResult: SimpleResultFilter
  resultTime: TimeFilter
}

input QualityInput {
  id: String
  ids: [String!]
  completeness: MeasureInput
  plausibility: MeasureInput
  age: MeasureInput
  frequency: MeasureInput
  timeliness: MeasureInput
  artificiality: MeasureInput
  concordance: MeasureInput
  stream: IoTStreamInput
}

input EventInput {
  id: String
  ids: [String!]
  label: String
  labelIn: [String!]
  search: String
  detectedFrom: IoTStreamInput
  windowStart: TimeFilter
  windowEnd: TimeFilter
}
`
