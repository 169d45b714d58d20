/** The route that shows who uses the orchestrator, and for what. */
import { limits } from '#base/limits/limits.ts'
import { type RouteTable, wholeNumber } from '#client/routes/route-table.ts'
import type { Clients } from './clients.ts'

export function createClientRoutes(clients: Clients): RouteTable {
  return {
    '/clients': {
      GET({ parameters }) {
        const max = limits.orchestratorClientsPage.value
        const limit = wholeNumber(parameters, { name: 'limit', min: 0, max }) ?? max
        const offset = wholeNumber(parameters, { name: 'offset', min: 0, max: 1_000_000 }) ?? 0
        return Response.json(clients.list({ tenant: parameters.get('tenant') ?? undefined, limit, offset }))
      },
    },
  }
}
