/** Descriptions of the other NGSI-LD routes; collected in operations.ts. */

import {
  chosen,
  created,
  done,
  evolved,
  mapping,
  ngsiLd,
  type OperationDescription,
  type OperationRow,
  operationsOf,
  ordered,
  page,
  shown,
  source,
  times,
} from './operation.ts'

export const resourceOperations: Readonly<Record<string, OperationDescription>> = {
  ...operationsOf('Subscriptions', ngsiLd, {
    'GET /subscriptions': ['List subscriptions', { 200: ['Subscription'] }, ['options', 'local', ...page]],
    'POST /subscriptions': ['Create a subscription', created, ['local'], 'Subscription'],
    'GET /subscriptions/:id': ['Retrieve a subscription', { 200: 'Subscription' }, ['options', 'local']],
    'PATCH /subscriptions/:id': ['Change a subscription', done, ['local'], 'Subscription'],
    'DELETE /subscriptions/:id': ['Delete a subscription', done, ['local']],
    'GET /subscriptions/:id/notifications': [
      'Receive notifications as a stream: Server-Sent Events (Last-Event-ID confirms) or WebSocket',
      { 200: null },
    ],
    'DELETE /subscriptions/:id/notifications': ['Confirm notifications of a stream', done, ['until']],
  }),
  ...operationsOf('Context sources', ngsiLd, {
    'GET /csourceRegistrations': [
      'Query registrations',
      { 200: ['Registration'] },
      [...source, ...times.slice(0, 4), ...page],
    ],
    'POST /csourceRegistrations': ['Register a context source', created, [], 'Registration'],
    'GET /csourceRegistrations/:id': [
      'Retrieve a registration',
      { 200: 'Registration' },
      ['options', 'local'],
    ],
    'PATCH /csourceRegistrations/:id': ['Change a registration', done, [], 'Registration'],
    'DELETE /csourceRegistrations/:id': ['Delete a registration', done],
    'GET /csourceSubscriptions': [
      'List subscriptions to registrations',
      { 200: ['Subscription'] },
      ['options', 'local', ...page],
    ],
    'POST /csourceSubscriptions': ['Create a subscription to registrations', created, [], 'Subscription'],
    'GET /csourceSubscriptions/:id': [
      'Retrieve a subscription to registrations',
      { 200: 'Subscription' },
      ['options', 'local'],
    ],
    'PATCH /csourceSubscriptions/:id': ['Change a subscription to registrations', done, [], 'Subscription'],
    'DELETE /csourceSubscriptions/:id': ['Delete a subscription to registrations', done],
  }),
  ...operationsOf('Contexts', ngsiLd, {
    'GET /jsonldContexts': [
      'List the addresses of stored contexts; with details, objects',
      { 200: ['ContextDetails'] },
      ['details', 'kind'],
    ],
    'POST /jsonldContexts': ['Add a context', created, [], 'Context'],
    'GET /jsonldContexts/:context': [
      'Retrieve a context; with details, its metadata',
      { 200: 'Context' },
      ['details'],
    ],
    'DELETE /jsonldContexts/:context': [
      'Delete a context; with reload, fetch a cached one again',
      done,
      ['reload'],
    ],
  }),
  ...operationsOf('Snapshots', ngsiLd, {
    'POST /snapshots': ['Create a snapshot of the current results of queries', created, [], 'Snapshot'],
    'GET /snapshots': ['List snapshots', { 200: ['Snapshot'] }, page],
    'DELETE /snapshots': ['Delete the snapshots that q selects', done, ['q']],
    'GET /snapshots/:id': ['Retrieve the state of a snapshot', { 200: 'Snapshot' }],
    'PATCH /snapshots/:id': [
      'Change the lifetime, priority or endpoint of a snapshot',
      { 200: 'Snapshot' },
      [],
      'Snapshot',
    ],
    'DELETE /snapshots/:id': ['Delete a snapshot', done],
    'POST /snapshots/:id/clone': ['Copy a snapshot', created],
  }),
  ...operationsOf('Information', ngsiLd, {
    'GET /info/sourceIdentity': [
      'Retrieve the identity of this gateway as a context source',
      { 200: 'ContextSourceIdentity' },
    ],
  }),
  ...operationsOf('Entity maps', ngsiLd, {
    'GET /entityMaps': [
      'Create an entity map of an entity query',
      { 201: 'Object' },
      [...shown, 'type', ...chosen, ...ordered, ...page, ...mapping],
    ],
    'POST /entityMaps': [
      'Create an entity map of an entity query with a query body',
      { 201: 'Object' },
      ['local', 'format', 'options', ...page],
      'Query',
    ],
    'GET /temporal/entityMaps': [
      'Create an entity map of a temporal query',
      { 201: 'Object' },
      [...evolved, 'type', ...chosen, ...ordered, ...page, ...mapping],
    ],
    'POST /temporal/entityMaps': [
      'Create an entity map of a temporal query with a query body',
      { 201: 'Object' },
      [...evolved, ...page],
      'Query',
    ],
  }),
  ...operationsOf('Entity maps', ngsiLd, { ...entityMapRows('entityMap'), ...entityMapRows('entityMaps') }),
}

/** The standard has used both names for this resource. */
function entityMapRows(name: string): Readonly<Record<string, OperationRow>> {
  return {
    [`GET /${name}/:id`]: ['Retrieve an entity map', { 200: 'Object' }, ['options', 'local']],
    [`PATCH /${name}/:id`]: ['Change the expiry of an entity map', done, ['local'], 'Object'],
    [`DELETE /${name}/:id`]: ['Delete an entity map', done, ['local']],
  }
}
