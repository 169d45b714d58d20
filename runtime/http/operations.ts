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

const shown = [
  ...['options', 'format', 'attrs', 'pick', 'omit', 'lang', 'datasetId', 'local'],
  ...['join', 'joinLevel', 'containedBy', 'geometryProperty'],
]
const page = ['limit', 'offset', 'count']
const chosen = [
  'id',
  'idPattern',
  'q',
  'georel',
  'geometry',
  'coordinates',
  'geoproperty',
  'scopeQ',
  'expandValues',
  'jsonKeys',
]
const ordered = ['orderBy', 'orderFrom', 'orderGeometry', 'collation']
const one = ['local', 'type']
const source = [
  'attrs',
  'coordinates',
  'csf',
  'geometry',
  'geoproperty',
  'georel',
  'id',
  'idPattern',
  'local',
  'options',
  'q',
  'scopeQ',
  'type',
]
const times = ['timerel', 'timeAt', 'endTimeAt', 'timeproperty', 'lastN']
const evolved = [
  ...[...times, 'aggrMethods', 'aggrPeriodDuration'],
  ...['attrs', 'datasetId', 'format', 'lang', 'local', 'omit', 'options', 'pick'],
]
const ngsiLd = '/ngsi-ld/v1'
const made = { 201: null } as const
const done = { 204: null } as const
const updated = { 204: null, 207: 'UpdateResult' } as const
const batched = { 204: null, 207: 'BatchOperationResult' } as const

const op = (
  tag: string,
  summary: string,
  answers: Operation['answers'],
  more: Pick<Operation, 'parameters' | 'body'> = {},
): Operation => ({ tag, summary, answers, ...more })

/** Operations by method and path. */
export const operations: Readonly<Record<string, Operation>> = {
  [`GET ${ngsiLd}/entities`]: op(
    'Entities',
    'Query entities',
    { 200: ['Entity'] },
    {
      parameters: [
        ...shown,
        'type',
        ...chosen,
        ...ordered,
        'pageKey',
        ...page,
        'entityMap',
        'entityMapLifetime',
      ],
    },
  ),
  [`POST ${ngsiLd}/entities`]: op('Entities', 'Create an entity', made, {
    parameters: ['local'],
    body: 'Entity',
  }),
  [`DELETE ${ngsiLd}/entities`]: op('Entities', 'Purge entities, or attributes of them', batched, {
    parameters: ['type', 'attrs', ...chosen, 'keep', 'drop', 'local'],
  }),
  [`GET ${ngsiLd}/entities/:id`]: op(
    'Entities',
    'Retrieve an entity',
    { 200: 'Entity' },
    { parameters: [...shown, 'type'] },
  ),
  [`PATCH ${ngsiLd}/entities/:id`]: op('Entities', 'Merge into an entity', done, {
    parameters: [...one, 'options', 'format', 'lang', 'observedAt'],
    body: 'Fragment',
  }),
  [`PUT ${ngsiLd}/entities/:id`]: op('Entities', 'Replace an entity', done, {
    parameters: one,
    body: 'Entity',
  }),
  [`DELETE ${ngsiLd}/entities/:id`]: op('Entities', 'Delete an entity', done, { parameters: one }),
  [`POST ${ngsiLd}/entities/:id/attrs`]: op('Entities', 'Append attributes', updated, {
    parameters: [...one, 'options'],
    body: 'Fragment',
  }),
  [`PATCH ${ngsiLd}/entities/:id/attrs`]: op('Entities', 'Update attributes', updated, {
    parameters: one,
    body: 'Fragment',
  }),
  [`PATCH ${ngsiLd}/entities/:id/attrs/:attribute`]: op('Entities', 'Update parts of an attribute', done, {
    parameters: one,
    body: 'Attribute',
  }),
  [`PUT ${ngsiLd}/entities/:id/attrs/:attribute`]: op('Entities', 'Replace an attribute', done, {
    parameters: one,
    body: 'Attribute',
  }),
  [`DELETE ${ngsiLd}/entities/:id/attrs/:attribute`]: op('Entities', 'Delete an attribute', done, {
    parameters: [...one, 'datasetId', 'deleteAll'],
  }),
  [`POST ${ngsiLd}/entityOperations/create`]: op(
    'Batches',
    'Create entities',
    { 201: 'Ids', 207: 'BatchOperationResult' },
    { parameters: ['local'], body: ['Entity'] },
  ),
  [`POST ${ngsiLd}/entityOperations/upsert`]: op(
    'Batches',
    'Create or replace entities, or with options=update update them',
    { 201: 'Ids', 204: null, 207: 'BatchOperationResult' },
    { parameters: ['local', 'options'], body: ['Entity'] },
  ),
  [`POST ${ngsiLd}/entityOperations/update`]: op(
    'Batches',
    'Append or update attributes of entities',
    batched,
    { parameters: ['local', 'options'], body: ['Entity'] },
  ),
  [`POST ${ngsiLd}/entityOperations/merge`]: op('Batches', 'Merge into entities', batched, {
    parameters: ['local'],
    body: ['Entity'],
  }),
  [`POST ${ngsiLd}/entityOperations/delete`]: op('Batches', 'Delete entities', batched, {
    parameters: ['local'],
    body: 'Ids',
  }),
  [`GET ${ngsiLd}/subscriptions`]: op(
    'Subscriptions',
    'List subscriptions',
    { 200: ['Subscription'] },
    { parameters: ['options', 'local', ...page] },
  ),
  [`POST ${ngsiLd}/subscriptions`]: op('Subscriptions', 'Subscribe', made, { body: 'Subscription' }),
  [`GET ${ngsiLd}/subscriptions/:id`]: op(
    'Subscriptions',
    'Retrieve a subscription',
    { 200: 'Subscription' },
    { parameters: ['options', 'local'] },
  ),
  [`PATCH ${ngsiLd}/subscriptions/:id`]: op('Subscriptions', 'Change a subscription', done, {
    body: 'Subscription',
  }),
  [`DELETE ${ngsiLd}/subscriptions/:id`]: op('Subscriptions', 'Unsubscribe', done),
  [`GET ${ngsiLd}/subscriptions/:id/notifications`]: op(
    'Subscriptions',
    'Take notifications as a stream: Server-Sent Events (Last-Event-ID confirms) or WebSocket',
    { 200: null },
  ),
  [`DELETE ${ngsiLd}/subscriptions/:id/notifications`]: op(
    'Subscriptions',
    'Confirm notifications of a stream',
    done,
    { parameters: ['until'] },
  ),
  [`GET ${ngsiLd}/temporal/entities/:id`]: op(
    'History',
    'Retrieve the history of an entity',
    { 200: 'EntityTemporal', 206: 'EntityTemporal' },
    { parameters: evolved },
  ),
  [`DELETE ${ngsiLd}/temporal/entities/:id`]: op('History', 'Delete an entity with its history', done, {
    parameters: ['local'],
  }),
  [`GET ${ngsiLd}/temporal/entities`]: op(
    'History',
    'Query the history of entities',
    { 200: ['EntityTemporal'], 206: ['EntityTemporal'] },
    { parameters: [...evolved, 'type', ...chosen, ...ordered, ...page] },
  ),
  [`POST ${ngsiLd}/temporal/entities`]: op(
    'History',
    'Create or extend a history',
    { 201: null, 204: null },
    { parameters: ['local'], body: 'EntityTemporal' },
  ),
  [`POST ${ngsiLd}/temporal/entities/:id/attrs`]: op('History', 'Add instances to a history', done, {
    parameters: ['local'],
    body: 'Fragment',
  }),
  [`DELETE ${ngsiLd}/temporal/entities/:id/attrs/:attribute`]: op(
    'History',
    'Delete an attribute with its history',
    done,
    { parameters: ['local', 'datasetId', 'deleteAll'] },
  ),
  [`PATCH ${ngsiLd}/temporal/entities/:id/attrs/:attribute/:instance`]: op(
    'History',
    'Change an instance of a history',
    done,
    { parameters: ['local'], body: 'Attribute' },
  ),
  [`DELETE ${ngsiLd}/temporal/entities/:id/attrs/:attribute/:instance`]: op(
    'History',
    'Delete an instance of a history',
    done,
    { parameters: ['local'] },
  ),
  [`POST ${ngsiLd}/temporal/entityOperations/query`]: op(
    'History',
    'Query the history of entities by a body',
    { 200: ['EntityTemporal'], 206: ['EntityTemporal'] },
    { parameters: [...evolved, ...page], body: 'Query' },
  ),
  [`GET ${ngsiLd}/types`]: op(
    'Discovery',
    'List entity types',
    { 200: 'EntityTypeList' },
    { parameters: ['details', 'local'] },
  ),
  [`GET ${ngsiLd}/types/:type`]: op(
    'Discovery',
    'Retrieve what is known of an entity type',
    { 200: 'EntityTypeInfo' },
    { parameters: ['local'] },
  ),
  [`GET ${ngsiLd}/attributes`]: op(
    'Discovery',
    'List attributes',
    { 200: 'AttributeList' },
    { parameters: ['details', 'local'] },
  ),
  [`GET ${ngsiLd}/attributes/:attribute`]: op(
    'Discovery',
    'Retrieve what is known of an attribute',
    { 200: 'Object' },
    { parameters: ['local'] },
  ),
  [`GET ${ngsiLd}/jsonldContexts`]: op(
    'Contexts',
    'List stored contexts: addresses, or with details objects',
    { 200: ['ContextDetails'] },
    { parameters: ['details', 'kind'] },
  ),
  [`POST ${ngsiLd}/jsonldContexts`]: op('Contexts', 'Add a context', made, { body: 'Context' }),
  [`GET ${ngsiLd}/jsonldContexts/:context`]: op(
    'Contexts',
    'Serve a context, or with details what is known of it',
    { 200: 'Context' },
    { parameters: ['details'] },
  ),
  [`DELETE ${ngsiLd}/jsonldContexts/:context`]: op(
    'Contexts',
    'Delete a context, or with reload get it anew',
    done,
    { parameters: ['reload'] },
  ),
  [`GET ${ngsiLd}/info/sourceIdentity`]: op('Information', 'Retrieve who this gateway is', {
    200: 'ContextSourceIdentity',
  }),
  [`POST ${ngsiLd}/snapshots`]: op('Snapshots', 'Keep what queries find now', made, { body: 'Snapshot' }),
  [`DELETE ${ngsiLd}/snapshots`]: op('Snapshots', 'Delete all snapshots', done),
  [`GET ${ngsiLd}/snapshots/:id`]: op('Snapshots', 'Retrieve what is known of a snapshot', {
    200: 'Snapshot',
  }),
  [`PATCH ${ngsiLd}/snapshots/:id`]: op(
    'Snapshots',
    'Change lifetime or priority of a snapshot',
    { 200: 'Snapshot' },
    { body: 'Snapshot' },
  ),
  [`DELETE ${ngsiLd}/snapshots/:id`]: op('Snapshots', 'Delete a snapshot', done),
  [`POST ${ngsiLd}/snapshots/:id/clone`]: op('Snapshots', 'Copy a snapshot', made),
  'POST /senml': op('Devices', 'Take one SenML pack', { 200: 'Object', 204: null }, { body: 'Senml' }),
  'GET /contexts/selvedge-platform.jsonld': op('Contexts', 'Serve the context of the platform', {
    200: 'Context',
  }),
  'GET /health/live': op('Operation', 'Whether the process lives', { 200: 'Health' }),
  'GET /health/ready': op('Operation', 'Whether it serves', { 200: 'Health' }),
  'GET /metrics': op('Operation', 'Metrics for Prometheus', { 200: 'Text' }),
  'GET /selvedge/v1/info': op('Operation', 'Version and profile', { 200: 'Information' }),
  'GET /openapi.json': op('Operation', 'This description', { 200: 'Object' }),
  [`POST ${ngsiLd}/entityOperations/query`]: op(
    'Entities',
    'Query entities by a body',
    { 200: ['Entity'] },
    { parameters: ['local', 'format', 'options', 'pageKey', ...page], body: 'Query' },
  ),
  [`GET ${ngsiLd}/csourceRegistrations`]: op(
    'Context sources',
    'Query registrations',
    { 200: ['Registration'] },
    { parameters: [...source, ...times.slice(0, 4), ...page] },
  ),
  [`POST ${ngsiLd}/csourceRegistrations`]: op('Context sources', 'Register a context source', made, {
    body: 'Registration',
  }),
  [`GET ${ngsiLd}/csourceRegistrations/:id`]: op(
    'Context sources',
    'Retrieve a registration',
    { 200: 'Registration' },
    { parameters: ['options', 'local'] },
  ),
  [`PATCH ${ngsiLd}/csourceRegistrations/:id`]: op('Context sources', 'Change a registration', done, {
    body: 'Registration',
  }),
  [`DELETE ${ngsiLd}/csourceRegistrations/:id`]: op('Context sources', 'Delete a registration', done),
  [`GET ${ngsiLd}/csourceSubscriptions`]: op(
    'Context sources',
    'List subscriptions to registrations',
    { 200: ['Subscription'] },
    { parameters: ['options', 'local', ...page] },
  ),
  [`POST ${ngsiLd}/csourceSubscriptions`]: op('Context sources', 'Subscribe to registrations', made, {
    body: 'Subscription',
  }),
  [`GET ${ngsiLd}/csourceSubscriptions/:id`]: op(
    'Context sources',
    'Retrieve a subscription to registrations',
    { 200: 'Subscription' },
    { parameters: ['options', 'local'] },
  ),
  [`PATCH ${ngsiLd}/csourceSubscriptions/:id`]: op(
    'Context sources',
    'Change a subscription to registrations',
    done,
    { body: 'Subscription' },
  ),
  [`DELETE ${ngsiLd}/csourceSubscriptions/:id`]: op(
    'Context sources',
    'Unsubscribe from registrations',
    done,
  ),
  ...entityMapOperations('entityMap'),
  ...entityMapOperations('entityMaps'),
}

/** The standard has had two names for the same resource. */
function entityMapOperations(name: string): Readonly<Record<string, Operation>> {
  const path = `${ngsiLd}/${name}/:id`
  const parameters = ['options', 'local']
  return {
    [`GET ${path}`]: op('Entity maps', 'Retrieve an entity map', { 200: 'Object' }, { parameters }),
    [`PATCH ${path}`]: op('Entity maps', 'Change when an entity map expires', done, { body: 'Object' }),
    [`DELETE ${path}`]: op('Entity maps', 'Delete an entity map', done),
  }
}
