/** Descriptions of the other NGSI-LD routes; collected in operations.ts. */

import {
  chosen,
  created,
  done,
  evolved,
  mapping,
  ngsiLd,
  type OperationDescription,
  op,
  ordered,
  page,
  shown,
  source,
  times,
} from './operation.ts'

export const resourceOperations: Readonly<Record<string, OperationDescription>> = {
  [`GET ${ngsiLd}/subscriptions`]: op(
    'Subscriptions',
    'List subscriptions',
    { 200: ['Subscription'] },
    { parameters: ['options', 'local', ...page] },
  ),
  [`POST ${ngsiLd}/subscriptions`]: op('Subscriptions', 'Create a subscription', created, {
    parameters: ['local'],
    body: 'Subscription',
  }),
  [`GET ${ngsiLd}/subscriptions/:id`]: op(
    'Subscriptions',
    'Retrieve a subscription',
    { 200: 'Subscription' },
    { parameters: ['options', 'local'] },
  ),
  [`PATCH ${ngsiLd}/subscriptions/:id`]: op('Subscriptions', 'Change a subscription', done, {
    parameters: ['local'],
    body: 'Subscription',
  }),
  [`DELETE ${ngsiLd}/subscriptions/:id`]: op('Subscriptions', 'Delete a subscription', done, {
    parameters: ['local'],
  }),
  [`GET ${ngsiLd}/subscriptions/:id/notifications`]: op(
    'Subscriptions',
    'Receive notifications as a stream: Server-Sent Events (Last-Event-ID confirms) or WebSocket',
    { 200: null },
  ),
  [`DELETE ${ngsiLd}/subscriptions/:id/notifications`]: op(
    'Subscriptions',
    'Confirm notifications of a stream',
    done,
    { parameters: ['until'] },
  ),
  [`GET ${ngsiLd}/csourceRegistrations`]: op(
    'Context sources',
    'Query registrations',
    { 200: ['Registration'] },
    { parameters: [...source, ...times.slice(0, 4), ...page] },
  ),
  [`POST ${ngsiLd}/csourceRegistrations`]: op('Context sources', 'Register a context source', created, {
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
  [`POST ${ngsiLd}/csourceSubscriptions`]: op(
    'Context sources',
    'Create a subscription to registrations',
    created,
    {
      body: 'Subscription',
    },
  ),
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
    'Delete a subscription to registrations',
    done,
  ),
  [`GET ${ngsiLd}/jsonldContexts`]: op(
    'Contexts',
    'List the addresses of stored contexts; with details, objects',
    { 200: ['ContextDetails'] },
    { parameters: ['details', 'kind'] },
  ),
  [`POST ${ngsiLd}/jsonldContexts`]: op('Contexts', 'Add a context', created, { body: 'Context' }),
  [`GET ${ngsiLd}/jsonldContexts/:context`]: op(
    'Contexts',
    'Retrieve a context; with details, its metadata',
    { 200: 'Context' },
    { parameters: ['details'] },
  ),
  [`DELETE ${ngsiLd}/jsonldContexts/:context`]: op(
    'Contexts',
    'Delete a context; with reload, fetch a cached one again',
    done,
    { parameters: ['reload'] },
  ),
  'GET /contexts/selvedge-platform.jsonld': op('Contexts', 'Retrieve the context of the platform', {
    200: 'Context',
  }),
  [`POST ${ngsiLd}/snapshots`]: op(
    'Snapshots',
    'Create a snapshot of the current results of queries',
    created,
    {
      body: 'Snapshot',
    },
  ),
  [`GET ${ngsiLd}/snapshots`]: op('Snapshots', 'List snapshots', { 200: ['Snapshot'] }, { parameters: page }),
  [`DELETE ${ngsiLd}/snapshots`]: op('Snapshots', 'Delete the snapshots that q selects', done, {
    parameters: ['q'],
  }),
  [`GET ${ngsiLd}/snapshots/:id`]: op('Snapshots', 'Retrieve the state of a snapshot', {
    200: 'Snapshot',
  }),
  [`PATCH ${ngsiLd}/snapshots/:id`]: op(
    'Snapshots',
    'Change the lifetime, priority or endpoint of a snapshot',
    { 200: 'Snapshot' },
    { body: 'Snapshot' },
  ),
  [`DELETE ${ngsiLd}/snapshots/:id`]: op('Snapshots', 'Delete a snapshot', done),
  [`POST ${ngsiLd}/snapshots/:id/clone`]: op('Snapshots', 'Copy a snapshot', created),
  [`GET ${ngsiLd}/info/sourceIdentity`]: op(
    'Information',
    'Retrieve the identity of this gateway as a context source',
    {
      200: 'ContextSourceIdentity',
    },
  ),
  [`GET ${ngsiLd}/entityMaps`]: op(
    'Entity maps',
    'Create an entity map of an entity query',
    { 201: 'Object' },
    { parameters: [...shown, 'type', ...chosen, ...ordered, ...page, ...mapping] },
  ),
  [`POST ${ngsiLd}/entityMaps`]: op(
    'Entity maps',
    'Create an entity map of an entity query with a query body',
    { 201: 'Object' },
    { parameters: ['local', 'format', 'options', ...page], body: 'Query' },
  ),
  [`GET ${ngsiLd}/temporal/entityMaps`]: op(
    'Entity maps',
    'Create an entity map of a temporal query',
    { 201: 'Object' },
    { parameters: [...evolved, 'type', ...chosen, ...ordered, ...page, ...mapping] },
  ),
  [`POST ${ngsiLd}/temporal/entityMaps`]: op(
    'Entity maps',
    'Create an entity map of a temporal query with a query body',
    { 201: 'Object' },
    { parameters: [...evolved, ...page], body: 'Query' },
  ),
  ...entityMapOperations('entityMap'),
  ...entityMapOperations('entityMaps'),
}

/** The standard has used both names for this resource. */
function entityMapOperations(name: string): Readonly<Record<string, OperationDescription>> {
  const path = `${ngsiLd}/${name}/:id`
  const parameters = ['options', 'local']
  return {
    [`GET ${path}`]: op('Entity maps', 'Retrieve an entity map', { 200: 'Object' }, { parameters }),
    [`PATCH ${path}`]: op('Entity maps', 'Change the expiry of an entity map', done, {
      parameters: ['local'],
      body: 'Object',
    }),
    [`DELETE ${path}`]: op('Entity maps', 'Delete an entity map', done, { parameters: ['local'] }),
  }
}
