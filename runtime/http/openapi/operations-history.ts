/** Descriptions of the history routes; collected in operations.ts. */

import {
  chosen,
  done,
  evolved,
  mapping,
  ngsiLd,
  type OperationDescription,
  op,
  ordered,
  page,
} from './operation.ts'

export const historyOperations: Readonly<Record<string, OperationDescription>> = {
  [`GET ${ngsiLd}/temporal/entities/:id`]: op(
    'History',
    'Retrieve the history of an entity',
    { 200: 'EntityTemporal', 206: 'EntityTemporal' },
    { parameters: [...evolved, 'type', ...mapping] },
  ),
  [`DELETE ${ngsiLd}/temporal/entities/:id`]: op(
    'History',
    'Delete the history of an entity, but not its current state',
    done,
    {
      parameters: ['local', 'type'],
    },
  ),
  [`GET ${ngsiLd}/temporal/entities`]: op(
    'History',
    'Query the history of entities',
    { 200: ['EntityTemporal'], 206: ['EntityTemporal'] },
    { parameters: [...evolved, 'type', ...chosen, ...ordered, ...page, ...mapping] },
  ),
  [`POST ${ngsiLd}/temporal/entities`]: op(
    'History',
    'Create or extend a history',
    { 201: null, 204: null },
    { parameters: ['local', 'options'], body: 'EntityTemporal' },
  ),
  [`POST ${ngsiLd}/temporal/entities/:id/attrs`]: op('History', 'Add instances to a history', done, {
    parameters: ['local'],
    body: 'Fragment',
  }),
  [`DELETE ${ngsiLd}/temporal/entities/:id/attrs/:attribute`]: op(
    'History',
    'Delete the history of an attribute, but not its current value',
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
    'Query the history of entities with a query body',
    { 200: ['EntityTemporal'], 206: ['EntityTemporal'] },
    { parameters: [...evolved, ...page], body: 'Query' },
  ),
}
