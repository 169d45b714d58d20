/** Routes for notifications and for bodies that clients send, and for the subscriptions at the broker. */
import { jsonBody, type RouteRequest, type RouteTable } from '#client/routes/route-table.ts'
import type { ServedBroker } from './served-broker.ts'

export function createCallbackRoutes({ receive, subscriptions }: ServedBroker): RouteTable {
  async function called(request: RouteRequest): Promise<Response> {
    const { segment } = request
    await receive(await jsonBody(request), segment === '' ? undefined : segment)
    return new Response('OK')
  }

  return {
    '/callback': { POST: called },
    '/callback/*': { POST: called },
    '/api/subscriptions': {
      async GET() {
        const result = await subscriptions.all()
        return Response.json({ count: result.length, result })
      },
      async POST(request) {
        const made = await subscriptions.create(await jsonBody(request))
        const headers = { Location: `/api/subscriptions/${encodeURIComponent(made.id)}` }
        return Response.json(made, { status: 201, headers })
      },
    },
    '/api/subscriptions/*': {
      async DELETE({ segment }) {
        await subscriptions.delete(segment)
        return new Response(null, { status: 204 })
      },
    },
  }
}
