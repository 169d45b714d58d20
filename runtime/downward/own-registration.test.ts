/** The registration at a centre holds what the settings say, each setting in its member (GS CIM 009, 5.2.9). */
import { expect, it } from 'vitest'
import { type RegisterSettings, refreshMsOf, registrationOf } from './own-registration.ts'

const own = { alias: 'urn:gw', gateway: 'gw', publicUrl: 'http://gw.example/', sourceToken: undefined }
const plain = {
  name: 'site',
  url: 'https://centre.example',
  mode: 'inclusive',
  types: ['Tank'],
  ids: [],
  properties: [],
  relationships: [],
  operations: [],
  tunnel: false,
  expirySeconds: 3600,
} as unknown as RegisterSettings
const whole = {
  id: 'urn:ngsi-ld:ContextSourceRegistration:urn:gw:site',
  type: 'ContextSourceRegistration',
  registrationName: 'site',
  mode: 'inclusive',
  information: [{ entities: [{ type: 'Tank' }] }],
  endpoint: 'http://gw.example',
  contextSourceAlias: 'urn:gw',
}
const place = { type: 'Point', coordinates: [8, 49] }

const rows: readonly (readonly [object, object])[] = [
  [{}, {}],
  [{ name: 'a b' }, { id: 'urn:ngsi-ld:ContextSourceRegistration:urn:gw:a%20b', registrationName: 'a b' }],
  [{ mode: 'exclusive' }, { mode: 'exclusive' }],
  [
    { ids: ['urn:t:1', 'urn:t:2'] },
    {
      information: [
        {
          entities: [
            { id: 'urn:t:1', type: 'Tank' },
            { id: 'urn:t:2', type: 'Tank' },
          ],
        },
      ],
    },
  ],
  [{ idPattern: 'urn:t:.*' }, { information: [{ entities: [{ idPattern: 'urn:t:.*', type: 'Tank' }] }] }],
  [{ properties: ['level'] }, { information: [{ entities: [{ type: 'Tank' }], propertyNames: ['level'] }] }],
  [
    { relationships: ['isIn'] },
    { information: [{ entities: [{ type: 'Tank' }], relationshipNames: ['isIn'] }] },
  ],
  [{ context: 'http://c.example/c.jsonld' }, { '@context': 'http://c.example/c.jsonld' }],
  [{ location: place }, { location: place }],
  [{ operations: ['retrieveEntity'] }, { operations: ['retrieveEntity'] }],
  [{ endpoint: 'http://elsewhere.example//' }, { endpoint: 'http://elsewhere.example' }],
  [{ tunnel: true }, { endpoint: 'urn:selvedge:tunnel:gw' }],
  [{ sourceTenant: 'hall' }, { tenant: 'hall' }],
]

it.each(rows)('%j', (settings, members) => {
  expect(registrationOf({ ...plain, ...settings }, own)).toEqual({ ...whole, ...members })
})

it('gives the centre the token for this gateway', () => {
  expect(registrationOf(plain, { ...own, sourceToken: 'abc' })).toEqual({
    ...whole,
    contextSourceInfo: [{ key: 'Authorization', value: 'Bearer abc' }],
  })
})

it('is renewed after a third of its time, unless the settings say when', () => {
  expect(refreshMsOf(plain)).toBe(1_200_000)
  expect(refreshMsOf({ ...plain, refreshSeconds: 7 })).toBe(7000)
})
