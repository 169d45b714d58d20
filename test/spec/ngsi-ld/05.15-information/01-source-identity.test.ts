/** Identity of the gateway as a context source [NGSI-LD 5.15]. */
import { expect, it } from 'vitest'
import { gatewayOfFile } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/info/sourceIdentity'

it('shall contain alias, uptime and time', async () => {
  const reply = await gateway.get(path, { Accept: 'application/ld+json' })
  expect(reply.status).toBe(200)
  expect(reply.json()).toEqual({
    id: 'urn:ngsi-ld:ContextSourceIdentity:selvedge-test',
    type: 'ContextSourceIdentity',
    contextSourceAlias: 'selvedge-test',
    contextSourceUptime: expect.stringMatching(/^PT0H0M\d+S$/),
    contextSourceTimeAt: expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:.]+Z$/),
    '@context': expect.stringContaining('core-context'),
  })
})

it('shall have no parameters and no other methods', async () => {
  expect((await gateway.get(`${path}?details=true`)).status).toBe(400)
  expect((await gateway.ask('DELETE', path)).status).toBe(405)
})
