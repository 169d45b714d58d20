/**
 * A request in which other brokers may have a part, as the files about distributed operations hand it to each other.
 */
import type { TenantBroker } from '#broker/types.ts'
import type { Asker } from '#federation/sources.ts'
import type { Registration } from '#ngsi-ld/registration.ts'
import type { HttpContext } from './body.ts'

/** A request that other brokers may have a part in. */
export interface Distributed {
  readonly c: HttpContext
  readonly broker: TenantBroker
  readonly asker: Asker
  readonly registrations: readonly Registration[]
  /** Path and query as they came. */
  readonly path: string
}

/** What takes any parameter: the route that runs afterwards knows which there are. */
export const anyParameter = { has: () => true, *[Symbol.iterator]() {} } as unknown as ReadonlySet<string>
