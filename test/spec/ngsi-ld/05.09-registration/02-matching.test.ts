/** Matching of registrations [NGSI-LD 5.12], in a discovery and in a subscription to registrations. */
import { beforeAll, describe, expect, test } from 'vitest'
import { gatewayOfFile } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/csourceRegistrations'

const registered: Readonly<Record<string, readonly object[]>> = {
  'urn:r:type': [{ entities: [{ type: 'Car' }] }],
  'urn:r:id': [{ entities: [{ type: 'Car', id: 'urn:car:1' }] }],
  'urn:r:pattern': [{ entities: [{ type: 'Car', idPattern: '^urn:car:[12]$' }] }],
  'urn:r:names': [{ entities: [{ type: 'Car' }], propertyNames: ['speed'], relationshipNames: ['owner'] }],
  'urn:r:any': [{ propertyNames: ['fuel'] }],
  'urn:r:two': [
    { entities: [{ type: 'Bike' }], propertyNames: ['bell'] },
    { entities: [{ type: ['Car', 'Boat'] }] },
  ],
}

beforeAll(async () => {
  for (const [id, information] of Object.entries(registered)) {
    const body = { id, type: 'ContextSourceRegistration', information, endpoint: 'http://127.0.0.1:9' }
    expect((await gateway.send('POST', path, body)).status).toBe(201)
  }
})

const found = async (query: string): Promise<string[]> => {
  const answer = await gateway.get(`${path}?${query}`)
  expect([query, answer.status]).toEqual([query, 200])
  return (answer.json() as { id: string }[]).map(({ id }) => id.slice('urn:r:'.length))
}

describe('GS CIM 009, 5.12: a registration matches', () => {
  test.each([
    // Type alone: ids and names do not matter.
    ['type=Car', ['type', 'id', 'pattern', 'names', 'any', 'two']],
    ['type=Boat', ['any', 'two']],
    ['type=Train', ['any']],
    ['type=Bike,Train', ['any', 'two']],
    // Several types at once: the registration must have all of them.
    ['type=(Car;Boat)', ['any', 'two']],
    ['type=(Car;Boat)|Bike', ['any', 'two']],
    // Ids: matches no id, an equal id, a matching pattern.
    ['type=Car&id=urn:car:1', ['type', 'id', 'pattern', 'names', 'any', 'two']],
    ['type=Car&id=urn:car:2', ['type', 'pattern', 'names', 'any', 'two']],
    ['type=Car&id=urn:car:3,urn:car:1', ['type', 'id', 'pattern', 'names', 'any', 'two']],
    ['type=Car&id=urn:car:3', ['type', 'names', 'any', 'two']],
    // Patterns: match an id that fits; whether two patterns overlap is unknown.
    ['type=Car&idPattern=%5Eurn:car', ['type', 'id', 'pattern', 'names', 'any', 'two']],
    ['type=Car&idPattern=%5Eurn:bus', ['type', 'pattern', 'names', 'any', 'two']],
    // Names: match if none is given, or if one is equal.
    ['type=Car&attrs=speed', ['type', 'id', 'pattern', 'names', 'two']],
    ['type=Car&attrs=owner,wheels', ['type', 'id', 'pattern', 'names', 'two']],
    ['type=Car&attrs=fuel', ['type', 'id', 'pattern', 'any', 'two']],
    ['attrs=bell', ['type', 'id', 'pattern', 'two']],
    ['attrs=bell&type=Bike', ['two']],
  ])('%s: %j', async (query, expected) => {
    expect(await found(query)).toEqual(expected)
  })

  test('by its matching information, and only that is returned', async () => {
    const [two] = (
      (await gateway.get(`${path}?type=Boat`)).json() as { id: string; information: object[] }[]
    ).filter(({ id }) => id === 'urn:r:two')
    expect(two!.information).toEqual([{ entities: [{ type: ['Car', 'Boat'] }] }])
  })

  test('a discovery requires types or names', async () => {
    for (const query of ['', 'id=urn:car:1', 'idPattern=.*'])
      expect((await gateway.get(`${path}?${query}`)).status).toBe(400)
  })
})
