/**
 * The number of attribute and type names of a tenant is bounded: writes that need a new name are refused, all
 * others continue.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'

setLimit('namesMax', 12)
const folder = mkdtempSync(join(tmpdir(), 'selvedge-names-'))
const entities = '/ngsi-ld/v1/entities'
let gateway: GatewayInside
beforeAll(async () => {
  gateway = await startGatewayInside(folder, noPlugins)
})
afterAll(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

const entity = (id: string, ...attributes: string[]): Record<string, unknown> => ({
  id: `urn:${id}`,
  type: 'T',
  ...Object.fromEntries(attributes.map((name) => [name, { type: 'Property', value: 1 }])),
})

it('is bounded, and the error states the limit', async () => {
  const statuses: number[] = []
  for (let i = 0; i < 8; i++)
    statuses.push((await gateway.send('POST', entities, entity(`${i}`, 'same', `other${i}`))).status)
  expect(statuses[0]).toBe(201)
  expect(statuses.at(-1)).toBe(403)
  const refused = await gateway.send('POST', entities, entity('more', 'yet'))
  expect(refused.json()).toMatchObject({
    type: 'https://uri.etsi.org/ngsi-ld/errors/TooManyResults',
    detail: expect.stringMatching(/^the maximum of attribute and type names is reached \(\d+ names\)/),
  })
})

it('accepts writes that need no new name, item by item and after a restart', async () => {
  const batch = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/upsert', [
    entity('a', 'same', 'other0'),
    entity('b', 'new'),
    entity('0', 'same', 'other0'),
  ])
  expect(batch.status).toBe(207)
  expect((batch.json() as { errors: object[] }).errors).toMatchObject([
    { entityId: 'urn:b', error: { status: 403 } },
  ])
  await gateway.close()
  gateway = await startGatewayInside(folder, noPlugins)
  expect((await gateway.send('POST', entities, entity('c', 'same', 'other0'))).status).toBe(201)
  expect((await gateway.send('POST', entities, entity('d', 'newer'))).status).toBe(403)
  expect((await gateway.send('DELETE', `${entities}/urn:c`, undefined)).status).toBe(204)
  // A combination of names that did not exist before remains possible.
  expect((await gateway.send('DELETE', `${entities}/urn:0/attrs/same`, undefined)).status).toBe(204)
  // A type with a known name makes a new combination, too, and uses up no name.
  expect((await gateway.send('POST', `${entities}/urn:a/attrs`, { type: 'same' })).status).toBe(403)
  expect((await gateway.get(`${entities}/urn:a`)).json()).toMatchObject({ type: 'T' })
})
