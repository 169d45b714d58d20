/**
 * The table of paths and methods for entities, temporal entities, types, attributes and snapshots. It also
 * fixes the order of the layers around a route: snapshot, then entity map, then context sources.
 */

import type { Distribution } from '#http/distribution/distributed-routes.ts'
import { type createEntityOperationRoutes, entityOperationsPath } from '#http/entities/batch-routes.ts'
import { attributesPath, type createDiscoveryRoutes, typesPath } from '#http/entities/discovery.ts'
import { type createEntityRoutes, entitiesPath } from '#http/entities/entity-routes.ts'
import type { createEntityWriteRoutes } from '#http/entities/entity-writes.ts'
import type { PurgeRoutes } from '#http/entities/purge.ts'
import type { MappedQueries } from '#http/entity-maps/mapped-queries.ts'
import { type createTemporalRoutes, temporalPath, temporalQueryPath } from '#http/history/temporal-routes.ts'
import type { createTemporalWriteRoutes } from '#http/history/temporal-writes.ts'
import type { HttpContext } from '#http/request/body.ts'
import { type createSnapshotRoutes, snapshotsPath } from '#http/snapshots/snapshot-routes.ts'

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
export type Route = (c: HttpContext) => Response | Promise<Response>
export type Methods = Readonly<Partial<Record<Method, Route>>>
/** The route of each method of each path. */
export type Table = Readonly<Record<string, Methods>>

/** Paths of types and attributes. */
export function discoveryTable(
  discovery: ReturnType<typeof createDiscoveryRoutes>,
  snapshot: EntityRoutes['snapshot'],
  shared: Distribution,
): Table {
  return {
    [typesPath]: { GET: snapshot.within(discovery.types, shared.discover('types', discovery.types)) },
    [`${typesPath}/:type`]: {
      GET: snapshot.within(discovery.type, shared.discover('type', discovery.type)),
    },
    [attributesPath]: {
      GET: snapshot.within(discovery.attributes, shared.discover('attributes', discovery.attributes)),
    },
    [`${attributesPath}/:attribute`]: {
      GET: snapshot.within(discovery.attribute, shared.discover('attribute', discovery.attribute)),
    },
  }
}

export function snapshotTable(snapshot: EntityRoutes['snapshot']): Table {
  return {
    [snapshotsPath]: { GET: snapshot.list, POST: snapshot.create, DELETE: snapshot.purge },
    [`${snapshotsPath}/:id`]: { GET: snapshot.retrieve, PATCH: snapshot.patch, DELETE: snapshot.remove },
    [`${snapshotsPath}/:id/clone`]: { POST: snapshot.clone },
  }
}

interface TemporalRoutes {
  readonly temporal: ReturnType<typeof createTemporalRoutes>
  readonly history: ReturnType<typeof createTemporalWriteRoutes>
  readonly snapshot: EntityRoutes['snapshot']
}

/** Paths of temporal entities; context sources may take part. */
export function temporalTable(
  { temporal, history, snapshot }: TemporalRoutes,
  shared: Distribution,
  mapped: MappedQueries,
): Table {
  return {
    [temporalQueryPath]: {
      POST: snapshot.within(
        temporal.queryByBody,
        mapped.aroundBody(shared.historiesByBody(temporal.queryByBody)),
      ),
    },
    [temporalPath]: {
      GET: snapshot.within(temporal.query, mapped.around(shared.histories(temporal.query))),
      POST: shared.write('upsertTemporal', 'entity', history.create),
    },
    [`${temporalPath}/:id`]: {
      GET: snapshot.within(temporal.retrieve, mapped.around(shared.history(temporal.retrieve))),
      DELETE: shared.write('deleteTemporal', 'whole', history.remove),
    },
    [`${temporalPath}/:id/attrs`]: { POST: shared.write('appendAttrsTemporal', 'fragment', history.append) },
    [`${temporalPath}/:id/attrs/:attribute`]: {
      DELETE: shared.write('deleteAttrsTemporal', 'attribute', history.removeAttribute),
    },
    [`${temporalPath}/:id/attrs/:attribute/:instance`]: {
      PATCH: shared.write('updateAttrInstanceTemporal', 'attribute', history.replaceInstance),
      DELETE: shared.write('deleteAttrInstanceTemporal', 'attribute', history.removeInstance),
    },
  }
}

interface EntityRoutes {
  readonly entities: ReturnType<typeof createEntityRoutes>
  readonly writes: ReturnType<typeof createEntityWriteRoutes>
  readonly operations: ReturnType<typeof createEntityOperationRoutes>
  readonly purge: PurgeRoutes
  readonly snapshot: ReturnType<typeof createSnapshotRoutes>
}

/** Paths of entities; context sources may take part. */
export function entityTable(
  { entities, writes, operations, purge, snapshot }: EntityRoutes,
  shared: Distribution,
  mapped: MappedQueries,
): Table {
  return {
    [entitiesPath]: {
      GET: snapshot.within(entities.query, mapped.around(shared.query(entities.query))),
      POST: shared.write('createEntity', 'entity', entities.create),
      DELETE: shared.purge(purge),
    },
    [`${entitiesPath}/:id`]: {
      GET: snapshot.within(entities.retrieve, mapped.around(shared.retrieve(entities.retrieve))),
      PATCH: shared.write('mergeEntity', 'fragment', writes.merge),
      PUT: shared.write('replaceEntity', 'entity', writes.replace),
      DELETE: shared.write('deleteEntity', 'whole', writes.remove),
    },
    [`${entitiesPath}/:id/attrs`]: {
      POST: shared.write('appendAttrs', 'fragment', writes.append),
      PATCH: shared.write('updateEntity', 'fragment', writes.update),
    },
    [`${entitiesPath}/:id/attrs/:attribute`]: {
      PATCH: shared.write('updateAttrs', 'attribute', writes.updateAttribute),
      PUT: shared.write('replaceAttrs', 'attribute', writes.replaceAttribute),
      DELETE: shared.write('deleteAttrs', 'attribute', writes.removeAttribute),
    },
    [`${entityOperationsPath}/create`]: { POST: shared.batch('createBatch', operations.create) },
    [`${entityOperationsPath}/upsert`]: { POST: shared.batch('upsertBatch', operations.upsert) },
    [`${entityOperationsPath}/query`]: {
      POST: snapshot.within(
        entities.queryByBody,
        mapped.aroundBody(shared.queryByBody(entities.queryByBody)),
      ),
    },
    [`${entityOperationsPath}/update`]: { POST: shared.batch('updateBatch', operations.update) },
    [`${entityOperationsPath}/merge`]: { POST: shared.batch('mergeBatch', operations.merge) },
    [`${entityOperationsPath}/delete`]: { POST: shared.batch('deleteBatch', operations.remove) },
  }
}
