/**
 * What every route does, in words and tables: the register behind /openapi.json and the API page. A spec test
 * compares it with the routes and with the parameters they really take, both ways.
 */

/** Names of schemas in openapi.ts. */
export type SchemaName =
  | 'Attribute'
  | 'AttributeList'
  | 'BatchOperationResult'
  | 'Context'
  | 'ContextDetails'
  | 'ContextSourceIdentity'
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
  | 'Senml'
  | 'Subscription'
  | 'Text'
  | 'UpdateResult'

export interface Operation {
  readonly tag: string
  readonly summary: string
  /** Query parameters, as in `parameters`. */
  readonly parameters?: readonly string[]
  readonly body?: SchemaName | readonly [SchemaName]
  /** Status of success to what the body is; null where there is none, in brackets a list of them. */
  readonly answers: Readonly<Record<number, SchemaName | readonly [SchemaName] | null>>
}

const shown = ['options', 'format', 'attrs', 'pick', 'omit', 'lang', 'datasetId', 'local']
const page = ['limit', 'offset', 'count']
const chosen = ['id', 'idPattern', 'q', 'georel', 'geometry', 'coordinates', 'geoproperty']
const one = ['local', 'type']
const times = ['timerel', 'timeAt', 'endTimeAt', 'timeproperty', 'lastN']
const ngsiLd = '/ngsi-ld/v1'
const made = { 201: null } as const
const done = { 204: null } as const
const updated = { 204: null, 207: 'UpdateResult' } as const
const batched = { 204: null, 207: 'BatchOperationResult' } as const

/** Operations by method and path. */
export const operations: Readonly<Record<string, Operation>> = {
  [`GET ${ngsiLd}/entities`]: {
    tag: 'Entities',
    summary: 'Query entities',
    parameters: [...shown, 'type', ...chosen, ...page],
    answers: { 200: ['Entity'] },
  },
  [`POST ${ngsiLd}/entities`]: {
    tag: 'Entities',
    summary: 'Create an entity',
    parameters: ['local'],
    body: 'Entity',
    answers: made,
  },
  [`GET ${ngsiLd}/entities/:id`]: {
    tag: 'Entities',
    summary: 'Retrieve an entity',
    parameters: [...shown, 'type'],
    answers: { 200: 'Entity' },
  },
  [`PATCH ${ngsiLd}/entities/:id`]: {
    tag: 'Entities',
    summary: 'Merge into an entity',
    parameters: [...one, 'options', 'format', 'lang', 'observedAt'],
    body: 'Fragment',
    answers: updated,
  },
  [`PUT ${ngsiLd}/entities/:id`]: {
    tag: 'Entities',
    summary: 'Replace an entity',
    parameters: one,
    body: 'Entity',
    answers: done,
  },
  [`DELETE ${ngsiLd}/entities/:id`]: {
    tag: 'Entities',
    summary: 'Delete an entity',
    parameters: one,
    answers: done,
  },
  [`POST ${ngsiLd}/entities/:id/attrs`]: {
    tag: 'Entities',
    summary: 'Append attributes',
    parameters: [...one, 'options'],
    body: 'Fragment',
    answers: updated,
  },
  [`PATCH ${ngsiLd}/entities/:id/attrs`]: {
    tag: 'Entities',
    summary: 'Update attributes',
    parameters: one,
    body: 'Fragment',
    answers: updated,
  },
  [`PATCH ${ngsiLd}/entities/:id/attrs/:attribute`]: {
    tag: 'Entities',
    summary: 'Update parts of an attribute',
    parameters: one,
    body: 'Attribute',
    answers: done,
  },
  [`PUT ${ngsiLd}/entities/:id/attrs/:attribute`]: {
    tag: 'Entities',
    summary: 'Replace an attribute',
    parameters: one,
    body: 'Attribute',
    answers: done,
  },
  [`DELETE ${ngsiLd}/entities/:id/attrs/:attribute`]: {
    tag: 'Entities',
    summary: 'Delete an attribute',
    parameters: [...one, 'datasetId', 'deleteAll'],
    answers: done,
  },
  [`POST ${ngsiLd}/entityOperations/create`]: {
    tag: 'Batches',
    summary: 'Create entities',
    parameters: ['local'],
    body: ['Entity'],
    answers: { 201: 'Ids', 207: 'BatchOperationResult' },
  },
  [`POST ${ngsiLd}/entityOperations/upsert`]: {
    tag: 'Batches',
    summary: 'Create or replace entities, or with options=update update them',
    parameters: ['local', 'options'],
    body: ['Entity'],
    answers: { 201: 'Ids', ...batched },
  },
  [`POST ${ngsiLd}/entityOperations/update`]: {
    tag: 'Batches',
    summary: 'Append or update attributes of entities',
    parameters: ['local', 'options'],
    body: ['Entity'],
    answers: batched,
  },
  [`POST ${ngsiLd}/entityOperations/merge`]: {
    tag: 'Batches',
    summary: 'Merge into entities',
    parameters: ['local'],
    body: ['Entity'],
    answers: batched,
  },
  [`POST ${ngsiLd}/entityOperations/delete`]: {
    tag: 'Batches',
    summary: 'Delete entities',
    parameters: ['local'],
    body: 'Ids',
    answers: batched,
  },
  [`GET ${ngsiLd}/subscriptions`]: {
    tag: 'Subscriptions',
    summary: 'List subscriptions',
    parameters: ['options', 'local', ...page],
    answers: { 200: ['Subscription'] },
  },
  [`POST ${ngsiLd}/subscriptions`]: {
    tag: 'Subscriptions',
    summary: 'Subscribe',
    body: 'Subscription',
    answers: made,
  },
  [`GET ${ngsiLd}/subscriptions/:id`]: {
    tag: 'Subscriptions',
    summary: 'Retrieve a subscription',
    parameters: ['options', 'local'],
    answers: { 200: 'Subscription' },
  },
  [`PATCH ${ngsiLd}/subscriptions/:id`]: {
    tag: 'Subscriptions',
    summary: 'Change a subscription',
    body: 'Subscription',
    answers: done,
  },
  [`DELETE ${ngsiLd}/subscriptions/:id`]: {
    tag: 'Subscriptions',
    summary: 'Unsubscribe',
    answers: done,
  },
  [`GET ${ngsiLd}/temporal/entities/:id`]: {
    tag: 'History',
    summary: 'Retrieve the history of an entity',
    parameters: [...times, 'attrs', 'options', 'format', 'local'],
    answers: { 200: 'EntityTemporal', 206: 'EntityTemporal' },
  },
  [`GET ${ngsiLd}/types`]: {
    tag: 'Discovery',
    summary: 'List entity types',
    parameters: ['details', 'local'],
    answers: { 200: 'EntityTypeList' },
  },
  [`GET ${ngsiLd}/types/:type`]: {
    tag: 'Discovery',
    summary: 'Retrieve what is known of an entity type',
    parameters: ['local'],
    answers: { 200: 'EntityTypeInfo' },
  },
  [`GET ${ngsiLd}/attributes`]: {
    tag: 'Discovery',
    summary: 'List attributes',
    parameters: ['details', 'local'],
    answers: { 200: 'AttributeList' },
  },
  [`GET ${ngsiLd}/attributes/:attribute`]: {
    tag: 'Discovery',
    summary: 'Retrieve what is known of an attribute',
    parameters: ['local'],
    answers: { 200: 'Object' },
  },
  [`GET ${ngsiLd}/jsonldContexts`]: {
    tag: 'Contexts',
    summary: 'List stored contexts: addresses, or with details objects',
    parameters: ['details', 'kind'],
    answers: { 200: ['ContextDetails'] },
  },
  [`POST ${ngsiLd}/jsonldContexts`]: {
    tag: 'Contexts',
    summary: 'Add a context',
    body: 'Context',
    answers: made,
  },
  [`GET ${ngsiLd}/jsonldContexts/:context`]: {
    tag: 'Contexts',
    summary: 'Serve a context, or with details what is known of it',
    parameters: ['details'],
    answers: { 200: 'Context' },
  },
  [`DELETE ${ngsiLd}/jsonldContexts/:context`]: {
    tag: 'Contexts',
    summary: 'Delete a context, or with reload get it anew',
    parameters: ['reload'],
    answers: done,
  },
  [`GET ${ngsiLd}/info/sourceIdentity`]: {
    tag: 'Information',
    summary: 'Retrieve who this gateway is',
    answers: { 200: 'ContextSourceIdentity' },
  },
  'POST /senml': {
    tag: 'Devices',
    summary: 'Take one SenML pack',
    body: 'Senml',
    answers: { 200: 'Object', 204: null },
  },
  'GET /contexts/selvedge-platform.jsonld': {
    tag: 'Contexts',
    summary: 'Serve the context of the platform',
    answers: { 200: 'Context' },
  },
  'GET /health/live': { tag: 'Operation', summary: 'Whether the process lives', answers: { 200: 'Health' } },
  'GET /health/ready': { tag: 'Operation', summary: 'Whether it serves', answers: { 200: 'Health' } },
  'GET /metrics': { tag: 'Operation', summary: 'Metrics for Prometheus', answers: { 200: 'Text' } },
  'GET /selvedge/v1/info': {
    tag: 'Operation',
    summary: 'Version and profile',
    answers: { 200: 'Information' },
  },
  'GET /openapi.json': { tag: 'Operation', summary: 'This description', answers: { 200: 'Object' } },
}

/** Query parameters: what each means, and its type where it is no text. */
export const parameters: Readonly<Record<string, readonly [meaning: string, type?: 'integer' | 'boolean']>> =
  {
    attrs: ['Names of attributes: only entities with one of them, only these are shown'],
    coordinates: ['Coordinates of the reference geometry, as in GeoJSON'],
    count: ['Whether NGSILD-Results-Count tells how many match', 'boolean'],
    datasetId: ['Identifier of attribute instances; @none is the default instance'],
    deleteAll: ['Whether all instances are deleted', 'boolean'],
    details: ['Whether details are told', 'boolean'],
    endTimeAt: ['End of a time interval'],
    format: ['Representation: normalized, concise, simplified, keyValues; of history temporalValues'],
    geometry: ['Type of the reference geometry'],
    geoproperty: ['Name of the GeoProperty that is looked at, location by default'],
    georel: ['Relation to the reference geometry, such as near;maxDistance==100'],
    id: ['Identifiers of entities, separated by commas'],
    idPattern: ['Regular expression on identifiers'],
    kind: ['Hosted, Cached or ImplicitlyCreated'],
    lang: ['Languages in order of preference'],
    lastN: ['Only the newest instances of each attribute, so many', 'integer'],
    limit: ['Most items of a page', 'integer'],
    local: ['Whether only this gateway is asked', 'boolean'],
    observedAt: ['Time of the values that have none'],
    offset: ['Items before the page', 'integer'],
    omit: ['Members that are not shown'],
    options: ['Representation and sysAttrs; of writes noOverwrite, replace, update'],
    pick: ['Members that are shown'],
    q: ['Query on attributes'],
    reload: ['Whether a cached context is fetched anew instead', 'boolean'],
    timeAt: ['Time, or begin of a time interval'],
    timeproperty: ['Time that is looked at: observedAt, createdAt, modifiedAt, deletedAt'],
    timerel: ['before, after or between'],
    type: ['Selection of entity types'],
  }
