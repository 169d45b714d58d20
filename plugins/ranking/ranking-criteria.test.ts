/** Each criterion has the value computed by hand, also from the attributes alone that are requested for it. */
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

const [sosa, qoi] = ['http://www.w3.org/ns/sosa/', 'https://w3id.org/iot/qoi#']
const minuteAgo = { [`${sosa}resultTime`]: property(ago(60)) }
const north = { type: 'Point', coordinates: [8, 49.1] }
/** A tenth of a degree on a sphere with the mean radius of the Earth, 6,371,008.8 m. */
const metresNorth = 11_119.508_023
const atNorth = 1000 / (1000 + metresNorth)

const cases: readonly (readonly [Criterion, string, JsonObject, number])[] = [
  ['proximity', 'a place', { location: { type: 'GeoProperty', value: north } }, atNorth],
  ['proximity', 'a derived place', { [derivedName]: property({ places: [north] }) }, atNorth],
  ['freshness', 'a result', { [`${sosa}hasSimpleResult`]: property(1, { observedAt: ago(60) }) }, 60 / 61],
  ['freshness', 'a result time', minuteAgo, 60 / 61],
  ['freshness', 'a result as old as the reference', { [`${sosa}resultTime`]: property(ago(3600)) }, 1 / 2],
  ['freshness', 'a derived time', { [derivedName]: property({ lastSeen: property(ago(60)) }) }, 60 / 61],
  ['availability', 'no update interval', minuteAgo, 1],
  [
    'availability',
    'two update intervals of silence',
    { ...minuteAgo, [`${qoi}updateinterval`]: property(30) },
    1,
  ],
  ['availability', 'an update interval', { ...minuteAgo, [`${qoi}updateinterval`]: property(1) }, 1 / 30],
  [
    'availability',
    'an update interval in minutes',
    { ...minuteAgo, [`${qoi}updateinterval`]: property(0.25, { [`${qoi}unit`]: property('min') }) },
    1 / 2,
  ],
  [
    'availability',
    'a derived update interval',
    { [derivedName]: property({ lastSeen: property(ago(60)), updateInterval: property(10) }) },
    1 / 3,
  ],
  ['availability', 'an end', { ...minuteAgo, [`${stream}streamEnd`]: property(ago(1)) }, 0],
  ['availability', 'a start to come', { ...minuteAgo, [`${stream}streamStart`]: property(ago(-9)) }, 0],
]

it.each(cases)('%s of an entity with %s', (criterion, _what, attributes, expected) => {
  const entity = { id: 'urn:e', type: 'T', other: property(2), ...attributes }
  const requested = new Set(['id', 'type', ...attributesFor(criterion, yardsticks)])
  const received = Object.fromEntries(Object.entries(entity).filter(([name]) => requested.has(name)))
  expect(compute(criterion, entity, finder, yardsticks)).toBeCloseTo(expected, 9)
  expect(isObject(received) && compute(criterion, received, finder, yardsticks)).toBeCloseTo(expected, 9)
})
