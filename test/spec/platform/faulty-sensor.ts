/** A sensor that varies, then sticks, for tests of fault detection. */
import { expect } from 'vitest'
import type { HttpClient } from '#test/kit/http-gateway.ts'

/** Sends what a device measures until it is stuck. Returns the id of its stream. */
export async function stickFor(client: HttpClient, device: string): Promise<string> {
  const begin = Date.now() - 3_600_000
  const body = Array.from({ length: 130 }, (_, i) => ({
    ...(i === 0 && { bn: `${device}:`, bt: begin / 1000 }),
    n: 'temperature',
    u: 'Cel',
    v: i < 115 ? 20 + (i % 7) : 25.5,
    t: i * 10,
  }))
  const headers = { 'Content-Type': 'application/senml+json' }
  const sent = await client.ask('POST', '/senml', { headers, body })
  expect([sent.status, sent.text]).toEqual([204, ''])
  return `urn:ngsi-ld:IotStream:${device}:temperature`
}
