/** Descriptions of the history routes; collected in operations.ts. */

import {
  chosen,
  done,
  evolved,
  mapping,
  ngsiLd,
  type OperationDescription,
  operationsOf,
  ordered,
  page,
} from './operation.ts'

export const historyOperations: Readonly<Record<string, OperationDescription>> = {
  ...operationsOf('History', ngsiLd, {
    'GET /temporal/entities/:id': [
      'Retrieve the history of an entity',
      { 200: 'EntityTemporal', 206: 'EntityTemporal' },
      [...evolved, 'type', ...mapping],
    ],
    'DELETE /temporal/entities/:id': [
      'Delete the history of an entity, but not its current state',
      done,
      ['local', 'type'],
    ],
    'GET /temporal/entities': [
      'Query the history of entities',
      { 200: ['EntityTemporal'], 206: ['EntityTemporal'] },
      [...evolved, 'type', ...chosen, ...ordered, ...page, ...mapping],
    ],
    'POST /temporal/entities': [
      'Create or extend a history',
      { 201: null, 204: null },
      ['local', 'options'],
      'EntityTemporal',
    ],
    'POST /temporal/entities/:id/attrs': ['Add instances to a history', done, ['local'], 'Fragment'],
    'DELETE /temporal/entities/:id/attrs/:attribute': [
      'Delete the history of an attribute, but not its current value',
      done,
      ['local', 'datasetId', 'deleteAll'],
    ],
    'PATCH /temporal/entities/:id/attrs/:attribute/:instance': [
      'Change an instance of a history',
      done,
      ['local'],
      'Attribute',
    ],
    'DELETE /temporal/entities/:id/attrs/:attribute/:instance': [
      'Delete an instance of a history',
      done,
      ['local'],
    ],
    'POST /temporal/entityOperations/query': [
      'Query the history of entities with a query body',
      { 200: ['EntityTemporal'], 206: ['EntityTemporal'] },
      [...evolved, ...page],
      'Query',
    ],
  }),
}
