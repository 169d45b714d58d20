/** Request bodies for sources with an earlier version of the standard. */
import { describe, expect, it } from 'vitest'
import { amendBody } from './amended-body.ts'

const entities = '/ngsi-ld/v1/entities'

describe('a body for an earlier version', () => {
  it('has the nearest known kinds, whether or not kinds are stated', () => {
    const given = {
      id: 'urn:p:1',
      type: 'Pump',
      name: { languageMap: { en: 'pump' } },
      data: { type: 'JsonProperty', json: { a: 1 } },
      plain: 7,
    }
    expect(amendBody(entities, given, 7)).toEqual({
      ...given,
      name: { type: 'LanguageProperty', languageMap: { en: 'pump' } },
      data: { type: 'Property', value: { a: 1 } },
    })
    expect(amendBody(entities, given, 3)).toMatchObject({ name: { type: 'Property', value: { en: 'pump' } } })
  })

  it('has no scope, types, instances or expiry unknown to that version', () => {
    const instances = [
      { type: 'Property', value: 1, datasetId: 'urn:d:1' },
      { type: 'Property', value: 2 },
    ]
    const given = {
      type: ['Pump', 'Other'],
      scope: '/a',
      expiresAt: '2030-01-01T00:00:00Z',
      flow: instances,
      size: { type: 'Property', value: { a: 1 } },
    }
    expect(amendBody(`${entities}/urn:p:1/attrs`, given, 2)).toEqual({
      type: 'Pump',
      flow: { type: 'Property', value: 2 },
      size: given.size,
    })
    expect(amendBody(`${entities}/urn:p:1/attrs`, given, 8)).toMatchObject({ scope: '/a', flow: instances })
  })

  it('is amended item by item in a batch, as an attribute where it is one, and not at all as a query', () => {
    const later = { type: 'ListProperty', valueList: [1] }
    const earlier = { type: 'Property', value: [1] }
    expect(amendBody('/ngsi-ld/v1/entityOperations/create', [{ flow: later }, 'urn:x'], 6)).toEqual([
      { flow: earlier },
      'urn:x',
    ])
    expect(amendBody(`${entities}/urn:p:1/attrs/flow`, later, 6)).toEqual(earlier)
    const query = { type: 'Query', entities: [{ type: 'Pump' }] }
    expect(amendBody('/ngsi-ld/v1/entityOperations/query', query, 2)).toBe(query)
  })
})
