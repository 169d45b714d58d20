/** Data of a stored entity: its document, its times, and the origin of its writes. */
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { ViaOrigin } from '#ngsi-ld/federation/via.ts'
import type { Stamps } from '#ngsi-ld/representation/representation.ts'

/** The origin of a change, stored in the log. */
export type ChangeOrigin = 'http' | 'mqtt' | 'provisioning' | 'plugin' | 'import' | 'expiry' | ViaOrigin

/**
 * createdAt and modifiedAt (ms) of an entity and of its attribute instances, keyed `name` or `name
 * datasetId`. A value written through other brokers includes their Via chain; '' is the entity itself if it
 * was created that way.
 */
export interface SystemTimes {
  readonly created: number
  readonly modified: number
  readonly attributes: Readonly<Record<string, Stamps>>
}

/**
 * A stored entity overlaid with its newest values. Reading is lazy: the text is free if there are no newer
 * values.
 */
export interface EntityView {
  readonly id: string
  /** The document as JSON text: core-compacted, normalized, without system attributes and @context. */
  text(): string
  entity(): Entity
  times(): SystemTimes
  /** Log number of its last change; it differs whenever the entity changed. */
  version(): number
  /** False if certainly nothing in it expires. */
  readonly mayExpire?: boolean
}
