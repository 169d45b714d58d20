/** Ids of subscriptions: those of the original, and different ones for different subscriptions. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { runs } from '#test/kit/runs.ts'
import { fingerprintOf, otherIdOf, subscriptionIdOf } from './subscription-id.ts'

const reference = 'http://127.0.0.1:3001/notify'
const watched: JsonObject = {
  type: 'Subscription',
  entities: [{ id: 'urn:ngsi-ld:StreamObservation:a:t', type: 'StreamObservation' }],
  watchedAttributes: ['http://www.w3.org/ns/sosa/hasSimpleResult'],
}
const idOf = (body: JsonObject, tenant = ''): string => subscriptionIdOf({ body, tenant }, reference)

it('is the one that clients of the original expect', () => {
  expect(idOf(watched)).toBe('urn:248cdb80-7ce7-3a2f-b580-d511edc91bc7')
  const endpoint = {
    accept: 'application/json',
    notifierInfo: [{ key: 'selvedge:delivery', value: 'durable' }],
  }
  const same = {
    ...watched,
    description: 'x',
    isActive: true,
    notification: { format: 'normalized', endpoint },
  }
  expect(idOf(same)).toBe(idOf(watched))
})

it.each<[string, JsonObject]>([
  ['another type where there is no id', { entities: [{ type: 'A' }] }],
  ['an idPattern', { entities: [{ idPattern: '.*', type: 'A' }] }],
  ['a query', { q: 'a>1' }],
  ['a geo query', { geoQ: { georel: 'within' } }],
  ['a scope query', { scopeQ: '/a' }],
  ['a context', { '@context': 'http://127.0.0.1/context' }],
  ['a period', { timeInterval: 5 }],
  ['throttling', { throttling: 5 }],
  ['an end', { expiresAt: '2030-01-01T00:00:00Z' }],
  ['a format', { notification: { format: 'keyValues' } }],
  ['attributes', { notification: { attributes: ['a'] } }],
  [
    'a switch to alternatives',
    { notification: { endpoint: { notifierInfo: [{ key: 'selvedge:onFailure', value: 'switch' }] } } },
  ],
  ['a media type', { notification: { endpoint: { accept: 'application/ld+json' } } }],
])('differs with %s', (_, change) => {
  expect(idOf({ ...watched, ...change })).not.toBe(idOf(watched))
})

it('differs with the tenant and the linked context', () => {
  expect(idOf(watched, 'a')).not.toBe(idOf(watched))
  const linked = { body: watched, tenant: '', linkedContext: 'http://127.0.0.1/context' }
  expect(subscriptionIdOf(linked, reference)).not.toBe(idOf(watched))
})

it('tells subscriptions apart whose keys are the same text', () => {
  const joined = { body: { entities: [{ id: 'urn:a__urn:b' }] }, tenant: '' }
  const several = { body: { entities: [{ id: 'urn:a' }, { id: 'urn:b' }] }, tenant: '' }
  expect(subscriptionIdOf(joined, reference)).toBe(subscriptionIdOf(several, reference))
  expect(fingerprintOf(joined)).not.toBe(fingerprintOf(several))
  expect(otherIdOf(joined, reference)).not.toBe(otherIdOf(several, reference))
})

it('is the same for the same members in any order, and a version 3 UUID for any JSON', () => {
  const property = fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (members) => {
    const body = members as JsonObject
    const reversed = Object.fromEntries(Object.entries(body).reverse())
    expect(idOf(reversed)).toBe(idOf(body))
    expect(idOf(body)).toMatch(/^urn:[\da-f]{8}-[\da-f]{4}-3[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  })
  fc.assert(property, { numRuns: runs(200) })
})
