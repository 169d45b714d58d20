/** Descriptions of the entity routes: current state, batches and discovery; collected in operations.ts. */

import {
  batched,
  chosen,
  created,
  done,
  mapping,
  ngsiLd,
  type OperationDescription,
  one,
  operationsOf,
  ordered,
  page,
  shown,
  updated,
} from './operation.ts'

export const entityOperations: Readonly<Record<string, OperationDescription>> = {
  ...operationsOf('Entities', ngsiLd, {
    'GET /entities': [
      'Query entities',
      { 200: ['Entity'] },
      [...shown, 'type', ...chosen, ...ordered, 'pageKey', ...page, ...mapping],
    ],
    'POST /entities': ['Create an entity', created, ['local'], 'Entity'],
    'DELETE /entities': [
      'Delete all entities that match a query, or some of their attributes',
      batched,
      ['type', 'attrs', ...chosen, 'keep', 'drop', 'local'],
    ],
    'GET /entities/:id': ['Retrieve an entity', { 200: 'Entity' }, [...shown, 'type', ...mapping]],
    'PATCH /entities/:id': [
      'Merge into an entity',
      done,
      [...one, 'options', 'format', 'lang', 'observedAt'],
      'Fragment',
    ],
    'PUT /entities/:id': ['Replace an entity', done, one, 'Entity'],
    'DELETE /entities/:id': ['Delete an entity', done, one],
    'POST /entities/:id/attrs': ['Append attributes', updated, [...one, 'options'], 'Fragment'],
    'PATCH /entities/:id/attrs': ['Update attributes', updated, one, 'Fragment'],
    'PATCH /entities/:id/attrs/:attribute': ['Update parts of an attribute', done, one, 'Attribute'],
    'PUT /entities/:id/attrs/:attribute': ['Replace an attribute', done, one, 'Attribute'],
    'DELETE /entities/:id/attrs/:attribute': [
      'Delete an attribute',
      done,
      [...one, 'datasetId', 'deleteAll'],
    ],
    'POST /entityOperations/query': [
      'Query entities with a query body',
      { 200: ['Entity'] },
      ['local', 'format', 'options', 'pageKey', ...page],
      'Query',
    ],
  }),
  ...operationsOf('Batches', ngsiLd, {
    'POST /entityOperations/create': [
      'Create entities',
      { 201: 'Ids', 207: 'BatchOperationResult' },
      ['local'],
      ['Entity'],
    ],
    'POST /entityOperations/upsert': [
      'Create or replace entities; with options=update, update existing ones',
      { 201: 'Ids', 204: null, 207: 'BatchOperationResult' },
      ['local', 'options'],
      ['Entity'],
    ],
    'POST /entityOperations/update': [
      'Append or update attributes of entities',
      batched,
      ['local', 'options'],
      ['Entity'],
    ],
    'POST /entityOperations/merge': ['Merge into entities', batched, ['local'], ['Entity']],
    'POST /entityOperations/delete': ['Delete entities', batched, ['local'], 'Ids'],
  }),
  ...operationsOf('Discovery', ngsiLd, {
    'GET /types': ['List entity types', { 200: 'EntityTypeList' }, ['details', 'local']],
    'GET /types/:type': ['Retrieve details of an entity type', { 200: 'EntityTypeInfo' }, ['local']],
    'GET /attributes': ['List attributes', { 200: 'AttributeList' }, ['details', 'local']],
    'GET /attributes/:attribute': ['Retrieve details of an attribute', { 200: 'Object' }, ['local']],
  }),
}
