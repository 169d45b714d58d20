/** What the broker holds of an entity: its document, its times, and who wrote it. */
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { ViaOrigin } from '#ngsi-ld/federation/via.ts'
import type { Stamps } from '#ngsi-ld/representation/representation.ts'

/** By whose hand a change was made; kept in the log. */
export type Origin = 'http' | 'mqtt' | 'provisioning' | 'plugin' | 'import' | 'expiry' | ViaOrigin

/**
 * createdAt and modifiedAt (ms) of an entity and of its attribute instances, keyed `name` or `name datasetId`. What was
 * written through other brokers names their chain; '' stands for the entity itself where it was created that way.
 */
export interface SystemTimes {
  readonly created: number
  readonly modified: number
  readonly attributes: Readonly<Record<string, Stamps>>
}

/** A stored entity with its newest values laid over it. Reading it is lazy: text costs nothing when nothing is newer. */
export interface EntityView {
  readonly id: string
  /** The document as JSON text: core-compacted, normalized, without system attributes and @context. */
  text(): string
  entity(): Entity
  times(): SystemTimes
  /** Number of its last change: another one whenever the entity became something else. */
  version(): number
  /** False where it is known that nothing of it expires. */
  readonly mayExpire?: boolean
}
