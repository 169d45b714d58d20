/** An internal failure, forced in a real process [NGSI-LD 6.3.2]: 500 with an id, and the log has that id. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { noPlugins } from '#test/kit/gateway-inside.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

let gateway: GatewayProcess
beforeAll(async () => {
  gateway = await startGatewayProcess({
    env: { ...noPlugins, SELVEDGE_FAILPOINTS: 'http:internal=throw(2)' },
  })
})
afterAll(() => gateway?.stop())

it('only the second request shall fail', async () => {
  const client = httpClient(gateway.httpUrl)
  const body = { id: 'urn:ngsi-ld:Room:1', type: 'Room' }
  expect((await client.send('POST', '/ngsi-ld/v1/entities/', body)).status).toBe(201)
  const failed = await client.send('POST', '/ngsi-ld/v1/entities/', { ...body, id: 'urn:ngsi-ld:Room:2' })
  expect(failed.status).toBe(500)
  const problem = failed.json() as { type: string; instance: string }
  expect(problem.type).toBe('https://uri.etsi.org/ngsi-ld/errors/InternalError')
  const line = await gateway.event('gateway.internal-error')
  expect(problem.instance).toBe(`urn:uuid:${String(line['id'])}`)
  expect((await client.get('/ngsi-ld/v1/entities/urn:ngsi-ld:Room:2')).status).toBe(404)
})
