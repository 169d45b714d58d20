/**
 * What the routes of the other resources of NGSI-LD do; operations.ts gathers it.
 */

import {
  chosen,
  done,
  evolved,
  made,
  mapping,
  ngsiLd,
  type Operation,
  op,
  ordered,
  page,
  shown,
  source,
  times,
} from './operation.ts'

export const resourceOperations: Readonly<Record<string, Operation>> = {
  [`GET ${ngsiLd}/subscriptions`]: op(
    'Subscriptions',
    'List subscriptions',
    { 200: ['Subscription'] },
    { parameters: ['options', 'local', ...page] },
  ),
  [`POST ${ngsiLd}/subscriptions`]: op('Subscriptions', 'Subscribe', made, {
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
  [`DELETE ${ngsiLd}/subscriptions/:id`]: op('Subscriptions', 'Unsubscribe', done, {
    parameters: ['local'],
  }),
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
  'GET /contexts/selvedge-platform.jsonld': op('Contexts', 'Serve the context of the platform', {
    200: 'Context',
  }),
  [`POST ${ngsiLd}/snapshots`]: op('Snapshots', 'Keep what queries find now', made, { body: 'Snapshot' }),
  [`GET ${ngsiLd}/snapshots`]: op('Snapshots', 'List snapshots', { 200: ['Snapshot'] }, { parameters: page }),
  [`DELETE ${ngsiLd}/snapshots`]: op('Snapshots', 'Delete the snapshots that q selects', done, {
    parameters: ['q'],
  }),
  [`GET ${ngsiLd}/snapshots/:id`]: op('Snapshots', 'Retrieve what is known of a snapshot', {
    200: 'Snapshot',
  }),
  [`PATCH ${ngsiLd}/snapshots/:id`]: op(
    'Snapshots',
    'Change lifetime, priority or endpoint of a snapshot',
    { 200: 'Snapshot' },
    { body: 'Snapshot' },
  ),
  [`DELETE ${ngsiLd}/snapshots/:id`]: op('Snapshots', 'Delete a snapshot', done),
  [`POST ${ngsiLd}/snapshots/:id/clone`]: op('Snapshots', 'Copy a snapshot', made),
  [`GET ${ngsiLd}/info/sourceIdentity`]: op('Information', 'Retrieve who this gateway is', {
    200: 'ContextSourceIdentity',
  }),
  [`GET ${ngsiLd}/entityMaps`]: op(
    'Entity maps',
    'Make an entity map of a query of entities',
    { 201: 'Object' },
    { parameters: [...shown, 'type', ...chosen, ...ordered, ...page, ...mapping] },
  ),
  [`POST ${ngsiLd}/entityMaps`]: op(
    'Entity maps',
    'Make an entity map of a query of entities by a body',
    { 201: 'Object' },
    { parameters: ['local', 'format', 'options', ...page], body: 'Query' },
  ),
  [`GET ${ngsiLd}/temporal/entityMaps`]: op(
    'Entity maps',
    'Make an entity map of a query of histories',
    { 201: 'Object' },
    { parameters: [...evolved, 'type', ...chosen, ...ordered, ...page, ...mapping] },
  ),
  [`POST ${ngsiLd}/temporal/entityMaps`]: op(
    'Entity maps',
    'Make an entity map of a query of histories by a body',
    { 201: 'Object' },
    { parameters: [...evolved, ...page], body: 'Query' },
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
    [`PATCH ${path}`]: op('Entity maps', 'Change when an entity map expires', done, {
      parameters: ['local'],
      body: 'Object',
    }),
    [`DELETE ${path}`]: op('Entity maps', 'Delete an entity map', done, { parameters: ['local'] }),
  }
}
