/**
 * HTTP routes of the quality analyser. All paths answer under `/semanticenrichment` too, the prefix of the
 * original component.
 */
import type { RouteEnvironment } from '#contract'
import { createRouter, type RouteTable } from '#plugins/quality/operator/route-table.ts'

const prefix = '/semanticenrichment'

export function createQualityRoutes(
  table: RouteTable,
): (request: Request, environment: RouteEnvironment) => Response | Promise<Response> {
  return createRouter({
    ...table,
    ...Object.fromEntries(Object.entries(table).map(([path, methods]) => [`${prefix}${path}`, methods])),
  })
}
