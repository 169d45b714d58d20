/**
 * Entities as GeoJSON (GS CIM 009, 4.5.16 and 4.5.17; RFC 7946): a Feature whose geometry is the value of one
 * GeoProperty and whose properties are all members except the id. Without that property the geometry is null.
 */
import type { Json } from '#contract/pipeline.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'

export interface FeatureOptions {
  /** Canonical name of the GeoProperty that becomes the geometry. */
  readonly geometryProperty: string
  /** Allowed instances, `@none` for the one without datasetId; that one takes precedence. */
  readonly datasetId?: ReadonlySet<string> | undefined
}

/** @param rendered the entity as rendered without GeoJSON. */
export function toFeature(entity: Entity, rendered: JsonObject, options: FeatureOptions): JsonObject {
  const { id: _, ...properties } = rendered
  return { id: entity.id, type: 'Feature', geometry: geometryOf(entity, options), properties }
}

function geometryOf(entity: Entity, { geometryProperty, datasetId }: FeatureOptions): Json {
  const instances = instancesOf(entity, geometryProperty).filter(
    (instance) => instance.type === 'GeoProperty' && (datasetId?.has(instance.datasetId ?? '@none') ?? true),
  )
  const byDefault = instances.find((instance) => instance.datasetId === undefined)
  // If all instances have a datasetId, only a request that names one can select among them (4.5.16.1).
  const isUndecided = datasetId === undefined && instances.length > 1
  const chosen = byDefault ?? (isUndecided ? undefined : instances[0])
  return chosen?.value ?? null
}
