/**
 * Discovery of types and attributes with context sources (GS CIM 009, 5.7.5 to 5.7.10). Sources that offer
 * the operation receive the same request, and the route runs on the merged inventory.
 */
import { gatherInventory } from '#federation/inventories.ts'
import type { HttpContext } from '#http/request/body.ts'
import { anyParameter, type Distributed, runRoute, withWarnings } from '#http/request/distributed-request.ts'
import type { Interest } from '#ngsi-ld/federation/registration-match.ts'
import type { SourceOperation } from '#ngsi-ld/federation/registration-operations.ts'
import { parseTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { type DistributedWritePorts, headersOf } from './distributed-writes.ts'

export type DiscoveryKind = 'types' | 'type' | 'attributes' | 'attribute'

interface Discovering {
  readonly kind: DiscoveryKind
  readonly local: (c: HttpContext) => Response | Promise<Response>
}

export function createDistributedDiscovery({ requests, problems, sources }: DistributedWritePorts) {
  return Object.freeze({
    async discover(
      { c, broker, requester, registrations, path }: Distributed,
      { kind, local }: Discovering,
    ): Promise<Response> {
      const { context, parameters } = await requests.read(c, anyParameter)
      const details = truthOf(parameters, 'details') === true
      const { expand } = context
      const interest: Interest =
        kind === 'type'
          ? { types: parseTypeSelection(c.req.param('type') ?? '', expand) }
          : kind === 'attribute'
            ? { attrs: [expand(c.req.param('attribute') ?? '')] }
            : {}
      const { inventory, warnings } = await gatherInventory(
        { sources, requester, inventory: broker.inventory },
        registrations,
        { operation: operationOf(kind, details), interest, path, headers: headersOf(c, false), context },
      )
      return withWarnings(
        await runRoute(problems, c, { ...broker, inventory: { ...broker.inventory, ...inventory } }, local),
        warnings,
      )
    },
  })
}

function operationOf(kind: DiscoveryKind, details: boolean): SourceOperation {
  if (kind === 'type') return 'retrieveEntityTypeInfo'
  if (kind === 'attribute') return 'retrieveAttrTypeInfo'
  if (kind === 'types') return details ? 'retrieveEntityTypeDetails' : 'retrieveEntityTypes'
  return details ? 'retrieveAttrTypeDetails' : 'retrieveAttrTypes'
}
