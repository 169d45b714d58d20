/** The attributes requested for a criterion are all that it reads. */
import { expect, it } from 'vitest'
import { isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import type { Criterion } from './attribute-path.ts'
import { attributesFor, compute, derivedName, type Yardsticks } from './ranking-criteria.ts'
import { createAttributeFinder } from './value.ts'

const now = Date.UTC(2026, 0, 1)
const yardsticks: Yardsticks = { now, point: [8, 49], distance: 1000, age: 3600, geoproperty: 'location' }
const finder = createAttributeFinder((name) => name)
const ago = (seconds: number): string => new Date(now - seconds * 1000).toISOString()
const stream = 'http://purl.org/iot/ontology/iot-stream#'
const property = (value: unknown, more: object = {}) => ({ type: 'Property', value, ...more }) as never

const cases: readonly (readonly [Criterion, string, JsonObject])[] = [
  [
    'proximity',
    'a place',
    { location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [8, 49.1] } } },
  ],
  [
    'proximity',
    'a derived place',
    { [derivedName]: property({ places: [{ type: 'Point', coordinates: [8, 49.1] }] }) },
  ],
  [
    'freshness',
    'a result',
    { 'http://www.w3.org/ns/sosa/hasSimpleResult': property(1, { observedAt: ago(60) }) },
  ],
  ['freshness', 'a result time', { 'http://www.w3.org/ns/sosa/resultTime': property(ago(60)) }],
  ['freshness', 'a derived time', { [derivedName]: property({ lastSeen: property(ago(60)) }) }],
  [
    'availability',
    'an update interval',
    {
      'http://www.w3.org/ns/sosa/resultTime': property(ago(60)),
      'https://w3id.org/iot/qoi#updateinterval': property(1),
    },
  ],
  [
    'availability',
    'an end',
    { 'http://www.w3.org/ns/sosa/resultTime': property(ago(60)), [`${stream}streamEnd`]: property(ago(1)) },
  ],
  [
    'availability',
    'a start',
    {
      'http://www.w3.org/ns/sosa/resultTime': property(ago(60)),
      [`${stream}streamStart`]: property(ago(-9)),
    },
  ],
]

it.each(cases)('%s of an entity with %s', (criterion, _what, attributes) => {
  const entity = { id: 'urn:e', type: 'T', other: property(2), ...attributes }
  const requested = new Set(['id', 'type', ...attributesFor(criterion, yardsticks)])
  const received = Object.fromEntries(Object.entries(entity).filter(([name]) => requested.has(name)))
  const value = compute(criterion, entity, finder, yardsticks)
  expect(isObject(received) && compute(criterion, received, finder, yardsticks)).toBe(value)
  expect(value).toBeGreaterThanOrEqual(0)
  expect(value).toBeLessThan(1)
})
