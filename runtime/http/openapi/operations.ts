/**
 * The register of all routes behind /openapi.json and the API page. A spec test compares it with the served
 * routes and their accepted parameters, in both directions.
 */

import type { OperationDescription } from './operation.ts'
import { entityOperations } from './operations-entities.ts'
import { gatewayOperations } from './operations-gateway.ts'
import { historyOperations } from './operations-history.ts'
import { resourceOperations } from './operations-resources.ts'

/** Operations by method and path. */
export const operations: Readonly<Record<string, OperationDescription>> = {
  ...entityOperations,
  ...historyOperations,
  ...resourceOperations,
  ...gatewayOperations,
}
