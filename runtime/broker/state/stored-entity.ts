/** Data of a stored entity: its document, its times, and the origin of its writes. */
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { ViaOrigin } from '#ngsi-ld/federation/via.ts'
import type { SystemTimes } from '#ngsi-ld/representation/representation.ts'

/** The origin of a change, stored in the log. */
export type ChangeOrigin = 'http' | 'mqtt' | 'provisioning' | 'plugin' | 'import' | 'expiry' | ViaOrigin

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
