/** HTTP routes of the quality analyser; all answer under the prefix of the original component, too. */

import { createRouter, type RouteTable } from '#client/routes/route-table.ts'
import type { RouteEnvironment } from '#contract'
import { originalPrefix } from '#plugins/quality/operator/original-routes.ts'

/** @param original paths of the original component; they have precedence. */
export function createQualityRoutes(
  table: RouteTable,
  original: RouteTable,
): (request: Request, environment: RouteEnvironment) => Response | Promise<Response> {
  const prefixed = Object.entries(table).map(([path, methods]) => [originalPrefix + path, methods] as const)
  return createRouter({ ...table, ...Object.fromEntries(prefixed), ...original })
}
