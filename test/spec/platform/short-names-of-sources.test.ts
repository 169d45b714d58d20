/** Short names of the platform in requests without @context that involve context sources. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const since = 'timerel=after&timeAt=2020-01-01T00:00:00Z'
const sosa = 'http://www.w3.org/ns/sosa/'
const property = (value: unknown) => ({ type: 'Property', value, observedAt: '2026-11-01T00:00:00Z' })

let here: HttpGateway
let there: HttpGateway
beforeAll(async () => {
  here = await startHttpGateway({ alias: 'here' })
  there = await startHttpGateway({ alias: 'there' })
  const held = [
    { id: 'urn:s:room', type: 'Room', name: property('cellar') },
    { id: 'urn:s:sensor', type: `${sosa}Sensor`, [`${sosa}hasSimpleResult`]: property(21) },
  ]
  for (const one of held) expect((await there.send('POST', entities, one)).status).toBe(201)
  const registration = {
    type: 'ContextSourceRegistration',
    information: [{ entities: [{ type: 'Room' }, { type: `${sosa}Sensor` }] }],
    operations: ['federationOps', 'retrieveTemporal', 'queryTemporal'],
    observationInterval: { startAt: '2020-01-01T00:00:00Z' },
    endpoint: there.url,
  }
  for (const { observationInterval, ...present } of [registration])
    for (const one of [present, { ...present, observationInterval }])
      expect((await here.send('POST', '/ngsi-ld/v1/csourceRegistrations', one)).status).toBe(201)
})
afterAll(async () => {
  await here.close()
  await there.close()
})

it.each([
  [`${entities}?type=Room&q=name==%22cellar%22&attrs=name`, 'urn:s:room', 'name'],
  [
    `${entities}?type=sosa:Sensor&q=hasSimpleResult%3E20&attrs=hasSimpleResult`,
    'urn:s:sensor',
    `${sosa}hasSimpleResult`,
  ],
  [`/ngsi-ld/v1/temporal/entities?type=Room&attrs=name&${since}`, 'urn:s:room', 'name'],
])('match the names of the sources: %s', async (path, id, member) => {
  const { status, json } = await here.get(path)
  const found = json() as readonly { id: string }[]
  expect([status, found.map((one) => one.id)]).toEqual([200, [id]])
  expect(Object.keys(found[0]!)).toContain(member)
})
