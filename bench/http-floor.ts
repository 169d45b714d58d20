/**
 * The floor of the HTTP figures: a bare Hono app on the same adapter. GET answers one constant text with the given
 * headers; PATCH parses the JSON body and answers 204. Argument, JSON: text and headers of an answer. Prints its port.
 */
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'

const { text, headers } = JSON.parse(process.argv[2]!) as { text: string; headers: Record<string, string> }

const app = new Hono()
app.get('/ngsi-ld/v1/entities/:id', () => new Response(text, { status: 200, headers }))
app.patch('/ngsi-ld/v1/entities/:id/attrs', async (c) => {
  await c.req.json()
  return new Response(null, { status: 204, headers: { Server: headers['Server']! } })
})
const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
})
process.once('SIGTERM', () => process.exit(0))
