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
  op,
  ordered,
  page,
  shown,
  updated,
} from './operation.ts'

export const entityOperations: Readonly<Record<string, OperationDescription>> = {
  [`GET ${ngsiLd}/entities`]: op(
    'Entities',
    'Query entities',
    { 200: ['Entity'] },
    {
      parameters: [...shown, 'type', ...chosen, ...ordered, 'pageKey', ...page, ...mapping],
    },
  ),
  [`POST ${ngsiLd}/entities`]: op('Entities', 'Create an entity', created, {
    parameters: ['local'],
    body: 'Entity',
  }),
  [`DELETE ${ngsiLd}/entities`]: op(
    'Entities',
    'Delete all entities that match a query, or some of their attributes',
    batched,
    {
      parameters: ['type', 'attrs', ...chosen, 'keep', 'drop', 'local'],
    },
  ),
  [`GET ${ngsiLd}/entities/:id`]: op(
    'Entities',
    'Retrieve an entity',
    { 200: 'Entity' },
    { parameters: [...shown, 'type', ...mapping] },
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
  [`POST ${ngsiLd}/entityOperations/query`]: op(
    'Entities',
    'Query entities with a query body',
    { 200: ['Entity'] },
    { parameters: ['local', 'format', 'options', 'pageKey', ...page], body: 'Query' },
  ),
  [`POST ${ngsiLd}/entityOperations/create`]: op(
    'Batches',
    'Create entities',
    { 201: 'Ids', 207: 'BatchOperationResult' },
    { parameters: ['local'], body: ['Entity'] },
  ),
  [`POST ${ngsiLd}/entityOperations/upsert`]: op(
    'Batches',
    'Create or replace entities; with options=update, update existing ones',
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
  [`GET ${ngsiLd}/types`]: op(
    'Discovery',
    'List entity types',
    { 200: 'EntityTypeList' },
    { parameters: ['details', 'local'] },
  ),
  [`GET ${ngsiLd}/types/:type`]: op(
    'Discovery',
    'Retrieve details of an entity type',
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
    'Retrieve details of an attribute',
    { 200: 'Object' },
    { parameters: ['local'] },
  ),
}
