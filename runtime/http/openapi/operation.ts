/**
 * What a route does, in words: the shape of an entry of operations.ts, and the parameters and answers that many
 * entries share.
 */

/** Names of schemas in openapi.ts. */
export type SchemaName =
  | 'Attribute'
  | 'AttributeList'
  | 'BatchOperationResult'
  | 'Context'
  | 'ContextDetails'
  | 'ContextSourceIdentity'
  | 'DeviceChoice'
  | 'Entity'
  | 'EntityTemporal'
  | 'EntityTypeInfo'
  | 'EntityTypeList'
  | 'Fragment'
  | 'Health'
  | 'Ids'
  | 'Information'
  | 'Object'
  | 'Query'
  | 'Registration'
  | 'Senml'
  | 'Snapshot'
  | 'Subscription'
  | 'Text'
  | 'UpdateResult'

export interface Operation {
  readonly tag: string
  readonly summary: string
  /** Query parameters, as in query-parameters.ts. */
  readonly parameters?: readonly string[]
  readonly body?: SchemaName | readonly [SchemaName]
  /** Status of success to what the body is; null where there is none, in brackets a list of them. */
  readonly answers: Readonly<Record<number, SchemaName | readonly [SchemaName] | null>>
}

export const shown = [
  ...['options', 'format', 'attrs', 'pick', 'omit', 'lang', 'datasetId', 'local'],
  ...['join', 'joinLevel', 'containedBy', 'geometryProperty'],
]
export const page = ['limit', 'offset', 'count']
export const chosen = [
  'id',
  'idPattern',
  'q',
  'georel',
  'geometry',
  'coordinates',
  'geoproperty',
  'scopeQ',
  'csf',
  'expandValues',
  'jsonKeys',
]
/** What all queries may say besides. */
export const ordered = ['orderBy', 'orderFrom', 'orderGeometry', 'collation', 'splitEntities']
/** Entity maps. */
export const mapping = ['entityMap', 'entityMapLifetime']
export const one = ['local', 'type']
export const source = [
  'attrs',
  'coordinates',
  'csf',
  'geometry',
  'geoproperty',
  'georel',
  'id',
  'idPattern',
  'lang',
  'local',
  'omit',
  'options',
  'pick',
  'q',
  'scopeQ',
  'type',
]
export const times = ['timerel', 'timeAt', 'endTimeAt', 'timeproperty', 'lastN']
export const evolved = [
  ...[...times, 'aggrMethods', 'aggrPeriodDuration'],
  ...['attrs', 'datasetId', 'format', 'lang', 'local', 'omit', 'options', 'pick'],
]
export const ngsiLd = '/ngsi-ld/v1'
export const made = { 201: null } as const
export const done = { 204: null } as const
export const updated = { 204: null, 207: 'UpdateResult' } as const
export const batched = { 204: null, 207: 'BatchOperationResult' } as const

export const op = (
  tag: string,
  summary: string,
  answers: Operation['answers'],
  more: Pick<Operation, 'parameters' | 'body'> = {},
): Operation => ({ tag, summary, answers, ...more })
