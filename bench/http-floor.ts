/**
 * The floor of the HTTP figures: a bare Hono app on the same adapter. GET answers one constant text with the given
 * headers; PATCH parses the JSON body and answers 204, and where there is somebody to notify posts a constant text to it.
 * Argument, JSON: text and headers of an answer, and whom to notify. Prints its port.
 */
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'

const { text, headers, notify } = JSON.parse(process.argv[2]!) as {
  text: string
  headers: Record<string, string>
  notify?: { url: string; notification: string }
}
const agent = new Agent({ keepAlive: true, maxSockets: 16 })

function post({ url, notification }: { url: string; notification: string }): void {
  const length = Buffer.byteLength(notification)
  const about = { 'Content-Type': 'application/json', 'Content-Length': length }
  request(url, { method: 'POST', agent, headers: about }, (answer) => answer.resume()).end(notification)
}

const app = new Hono()
app.get('/ngsi-ld/v1/entities/:id', () => new Response(text, { status: 200, headers }))
app.patch('/ngsi-ld/v1/entities/:id/attrs', async (c) => {
  await c.req.json()
  if (notify !== undefined) post(notify)
  return new Response(null, { status: 204, headers: { Server: headers['Server']! } })
})
const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
})
process.once('SIGTERM', () => process.exit(0))
