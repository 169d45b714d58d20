/** The complete entities of sensor integration, and the parts that provisioning leaves unchanged. */
import { expect, it } from 'vitest'
import type { Json, Reading } from '#contract'
import { coreContext } from '#ngsi-ld/context/context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { parseEntity } from '#ngsi-ld/entity/entity.ts'
import {
  type DeviceSighting,
  hasSameForm,
  hostingFragment,
  type KnownEntity,
  learntInterval,
  mayFollow,
  mayLearnInterval,
  missingParts,
  simpleResult,
  siteEntities,
  withOthersOf,
} from './site-model.ts'

const device = 'urn:dev:mac:0024befffe804ff1'
const at = Date.UTC(2026, 2, 1, 10, 13, 52, 500)
const address = {
  endpoint: 'mqtt://127.0.0.1:1883',
  interfaceType: 'MQTT',
  topic: 'senml/demo',
  format: 'application/senml+json',
}
const own = { shareObservableProperty: false }
const shared = { shareObservableProperty: true }

const reading = (field: string, value: Reading['value'], more: Partial<Reading> = {}): Reading => ({
  device,
  field,
  value,
  ...more,
})
const sighting = (readings: readonly Reading[], more: Partial<DeviceSighting> = {}): DeviceSighting => ({
  device,
  fields: readings.map((one) => ({ reading: one, observedAt: at, timeSource: 'device' })),
  address,
  ...more,
})

const sosa = (name: string): string => `http://www.w3.org/ns/sosa/${name}`
const stream = (name: string): string => `http://purl.org/iot/ontology/iot-stream#${name}`
const qoi = (name: string): string => `https://w3id.org/iot/qoi#${name}`
const lite = (name: string): string => `http://purl.oclc.org/NET/UNIS/fiware/iot-lite#${name}`
const label = 'http://www.w3.org/2000/01/rdf-schema#label'
const ours = (name: string): string => `urn:selvedge:ns:${name}`
const property = (value: Json) => ({ type: 'Property', value })
const relationship = (object: string | string[]) => ({ type: 'Relationship', object })
const id = (kind: string, field = 'Temp'): string => `urn:ngsi-ld:${kind}:${device}:${field}`
const platformId = `urn:ngsi-ld:Platform:${device}`
const serviceId = `urn:ngsi-ld:Service:${device}:senml/demo`

it('creates six entities for a first reading without further information', () => {
  expect(siteEntities(sighting([reading('Temp', 21.4, { unitCode: 'CEL' })]), own)).toEqual([
    { id: platformId, type: sosa('Platform'), [sosa('hosts')]: relationship(id('Sensor')) },
    {
      id: id('Sensor'),
      type: sosa('Sensor'),
      [sosa('isHostedBy')]: relationship(platformId),
      [sosa('observes')]: relationship(id('ObservableProperty')),
      [sosa('madeObservation')]: relationship(id('StreamObservation')),
      [qoi('updateinterval')]: property('NA'),
      [qoi('valuetype')]: property('float'),
      [qoi('min')]: property('NA'),
      [qoi('max')]: property('NA'),
    },
    {
      id: id('IotStream'),
      type: stream('IotStream'),
      [stream('generatedBy')]: relationship(id('Sensor')),
      [stream('observes')]: relationship(id('ObservableProperty')),
      [stream('providedBy')]: relationship(serviceId),
      [sosa('observes')]: relationship(id('ObservableProperty')),
    },
    {
      id: id('ObservableProperty'),
      type: sosa('ObservableProperty'),
      [label]: property('temp'),
      [sosa('isObservedBy')]: relationship(id('Sensor')),
    },
    {
      id: id('StreamObservation'),
      type: stream('StreamObservation'),
      [stream('belongsTo')]: relationship(id('IotStream')),
      [sosa('madeBySensor')]: relationship(id('Sensor')),
      [sosa('observedProperty')]: relationship(id('ObservableProperty')),
      [sosa('hasSimpleResult')]: {
        type: 'Property',
        value: 21.4,
        unitCode: 'CEL',
        observedAt: '2026-03-01T10:13:52.500Z',
        [ours('timeSource')]: property('device'),
      },
      [sosa('resultTime')]: property('2026-03-01T10:13:52.500Z'),
    },
    {
      id: serviceId,
      type: lite('Service'),
      [lite('endpoint')]: property('mqtt://127.0.0.1:1883'),
      [lite('interfaceType')]: property('MQTT'),
      [ours('topic')]: property('senml/demo'),
      'http://purl.org/dc/terms/format': property('application/senml+json'),
    },
  ])
})

const location = { type: 'Point' as const, coordinates: [7.45, 51.5] as [number, number] }
const declared = {
  name: 'Boiler room',
  location,
  fields: {
    Temp: {
      label: 'Air Temperature',
      unitCode: 'FAH',
      min: -20,
      max: 0,
      updateInterval: 60,
      valueType: 'int',
      regexp: '^x',
    },
  },
} satisfies DeviceSighting['declared']

it('adds declared metadata', () => {
  const [platform, sensor, iotStream, observed, observation] = siteEntities(
    sighting([reading('Temp', 21, { unitText: 'furlong', updateIntervalSeconds: 5 })], { declared }),
    own,
  )
  const place = { location: { type: 'GeoProperty', value: location } }
  expect(platform).toMatchObject({ 'http://schema.org/name': property('Boiler room'), ...place })
  expect(sensor).toMatchObject({
    [qoi('updateinterval')]: {
      ...property(60),
      [qoi('unit')]: property('seconds'),
      [ours('basis')]: property('declared'),
    },
    [qoi('valuetype')]: property('int'),
    [qoi('regexp')]: property('^x'),
    [qoi('min')]: property(-20),
    [qoi('max')]: property(0),
    ...place,
  })
  expect(iotStream).toMatchObject(place)
  expect(observed).toMatchObject({ [label]: property('air temperature') })
  expect(observation?.[sosa('hasSimpleResult')]).toMatchObject({ unitCode: 'FAH' })
  expect(observation?.[sosa('hasSimpleResult')]).not.toHaveProperty('http://schema.org/unitText')
})

it('declares nothing for a field named like a member of every object', () => {
  for (const field of ['constructor', 'toString', '__proto__']) {
    const [, sensor] = siteEntities(sighting([reading(field, 1)], { declared }), own)
    expect(sensor?.[qoi('min')]).toEqual(property('NA'))
  }
})

it("uses the device's update interval if no person declared one", () => {
  const [, sensor] = siteEntities(sighting([reading('t', 1, { updateIntervalSeconds: 5 })]), own)
  expect(sensor?.[qoi('updateinterval')]).toMatchObject({ value: 5, [ours('basis')]: property('declared') })
})

it('determines the type of a value', () => {
  const typeOf = (value: Reading['value']) =>
    siteEntities(sighting([reading('f', value)]), own)[1]?.[qoi('valuetype')]
  expect(typeOf(1)).toEqual(property('float'))
  expect(typeOf('x')).toEqual(property('string'))
  expect(typeOf(false)).toEqual(property('boolean'))
  expect(typeOf([1])).toEqual(property('NA'))
})

it('keeps an unknown unit as text beside the value', () => {
  const result = simpleResult({
    reading: reading('f', 1, { unitText: 'furlong' }),
    observedAt: at,
    timeSource: 'gateway',
  })
  expect(result).toEqual({
    ...property(1),
    observedAt: '2026-03-01T10:13:52.500Z',
    'http://schema.org/unitText': property('furlong'),
    [ours('timeSource')]: property('gateway'),
  })
})

it('creates one Platform and one Service for all fields, each entity once', () => {
  const entities = siteEntities(sighting([reading('a', 1), reading('b', 2), reading('a', 3)]), own)
  expect(entities.map((entity) => entity.id)).toEqual([
    platformId,
    ...[id('Sensor', 'a'), id('Sensor', 'b'), id('IotStream', 'a'), id('IotStream', 'b')],
    ...[id('ObservableProperty', 'a'), id('ObservableProperty', 'b')],
    ...[id('StreamObservation', 'a'), id('StreamObservation', 'b'), serviceId],
  ])
  expect(entities[0]?.[sosa('hosts')]).toEqual(relationship([id('Sensor', 'a'), id('Sensor', 'b')]))
  expect(siteEntities(sighting([]), own)).toEqual([])
})

it('shares properties by label if configured', () => {
  const entities = siteEntities(sighting([reading('Temp', 1), reading('TEMP', 2)]), shared)
  const properties = entities.filter(({ type }) => type === sosa('ObservableProperty'))
  expect(properties).toEqual([
    {
      id: 'urn:ngsi-ld:ObservableProperty:temp',
      type: sosa('ObservableProperty'),
      [label]: property('temp'),
    },
  ])
  for (const one of entities.filter(({ type }) => type === sosa('Sensor')))
    expect(one[sosa('observes')]).toEqual(relationship('urn:ngsi-ld:ObservableProperty:temp'))
})

/** Stored entities that nobody has changed since they were created. */
const stored =
  (entities: readonly Entity[]) =>
  (one: string): KnownEntity | undefined => {
    const entity = entities.find((each) => each.id === one)
    return entity && { entity, isAsMade: () => true }
  }

it('creates only missing entities, and adds new sensors to the Platform', () => {
  const first = sighting([reading('a', 1)])
  const find = stored(siteEntities(first, own))
  expect(missingParts(() => undefined, first, own).extend).toEqual([])
  expect(missingParts(find, first, own)).toEqual({ create: [], extend: [] })
  const { create, extend } = missingParts(find, sighting([reading('a', 1), reading('b', 2)]), own)
  expect(create.map((entity) => entity.id)).toEqual(
    ['Sensor', 'IotStream', 'ObservableProperty', 'StreamObservation'].map((kind) => id(kind, 'b')),
  )
  const hosts = relationship([id('Sensor', 'a'), id('Sensor', 'b')])
  expect(extend).toEqual([{ id: platformId, fragment: { [sosa('hosts')]: hosts } }])
})

it('creates deleted entities again', () => {
  const first = sighting([reading('a', 1)])
  const [, ...others] = siteEntities(first, own)
  const { create, extend } = missingParts(stored(others), first, own)
  expect(create.map((entity) => entity.id)).toEqual([platformId])
  expect(extend).toEqual([])
})

it('fills in later declarations where nobody has written a value', () => {
  const seen = siteEntities(sighting([reading('Temp', 1)]), own)
  const later = sighting([reading('Temp', 2)], { declared })
  const place = { location: { type: 'GeoProperty', value: location } }
  const interval = {
    ...property(60),
    [qoi('unit')]: property('seconds'),
    [ours('basis')]: property('declared'),
  }
  expect(missingParts(stored(seen), later, own)).toEqual({
    create: [],
    extend: [
      { id: platformId, fragment: { 'http://schema.org/name': property('Boiler room'), ...place } },
      {
        id: id('Sensor'),
        fragment: {
          [qoi('updateinterval')]: interval,
          [qoi('min')]: property(-20),
          [qoi('max')]: property(0),
          [qoi('regexp')]: property('^x'),
          ...place,
        },
      },
      { id: id('IotStream'), fragment: place },
    ],
  })
  expect(missingParts(stored(siteEntities(later, own)), later, own).extend).toEqual([])
  const written = (one: string): KnownEntity | undefined => {
    const known = stored(seen)(one)
    return known && { ...known, isAsMade: () => false }
  }
  const [, sensor] = missingParts(written, later, own).extend
  expect(sensor?.fragment).toEqual({ [qoi('regexp')]: property('^x'), ...place })
})

it('replaces a learnt interval with a declared one', () => {
  const known = siteEntities(sighting([reading('Temp', 1)]), own).map((entity) =>
    entity.id === id('Sensor') ? { ...entity, ...learntInterval(10) } : entity,
  )
  const more = { ...declared, fields: { Temp: { updateInterval: 60 } }, name: undefined, location: undefined }
  const { extend } = missingParts(stored(known), sighting([reading('Temp', 2)], { declared: more }), own)
  expect(extend).toMatchObject([{ id: id('Sensor'), fragment: { [qoi('updateinterval')]: { value: 60 } } }])
})

it("keeps people's sub-attributes of a result, but no unit other than its own", () => {
  const first = { observedAt: at, timeSource: 'device' } as const
  const celsius = simpleResult({ ...first, reading: reading('f', 1, { unitCode: 'CEL' }) })
  const furlong = simpleResult({ ...first, reading: reading('f', 2, { unitText: 'furlong' }) })
  const note = { note: property('by hand') }
  expect(withOthersOf({ ...celsius, ...note }, furlong)).toEqual({ ...furlong, ...note })
  expect(withOthersOf({ ...furlong, ...note }, celsius)).toEqual({ ...celsius, ...note })
  expect(withOthersOf({ type: 'Relationship', object: 'urn:a:b', ...note }, celsius)).toEqual(celsius)
  expect(hasSameForm({ ...celsius, ...note, value: 5 }, celsius)).toBe(true)
  expect(hasSameForm(celsius, furlong)).toBe(false)
})

it('lets a late result follow one of the same unit, and a new one only in its form', () => {
  const result = (seconds: number, timeSource: 'device' | 'gateway', unitCode: string) =>
    simpleResult({ reading: reading('f', 1, { unitCode }), observedAt: at + seconds * 1000, timeSource })
  const before = result(0, 'gateway', 'CEL')
  expect(mayFollow(before, result(1, 'gateway', 'CEL'))).toBe(true)
  expect(mayFollow(before, result(1, 'device', 'CEL'))).toBe(false)
  expect(mayFollow(before, result(-1, 'device', 'CEL'))).toBe(true)
  expect(mayFollow(before, result(-1, 'gateway', 'KEL'))).toBe(false)
  const { observedAt: _observedAt, ...untimed } = before
  expect(mayFollow(untimed, result(-1, 'device', 'CEL'))).toBe(false)
})

it('adds sensors to those hosted by a Platform, in whatever form they are listed', () => {
  const platform = (hosts?: Entity[string]): Entity => ({
    id: platformId,
    type: sosa('Platform'),
    ...(hosts !== undefined && { [sosa('hosts')]: hosts }),
  })
  const added = (hosts: Entity[string], ...sensors: string[]) =>
    hostingFragment(platform(hosts), platform(relationship(sensors)))
  const hosting = (object: string | string[]) => ({ [sosa('hosts')]: relationship(object) })
  expect(added(undefined, 'urn:s:1')).toEqual(hosting('urn:s:1'))
  expect(added(relationship('urn:s:1'), 'urn:s:2')).toEqual(hosting(['urn:s:1', 'urn:s:2']))
  expect(added(relationship(['urn:s:1', 'urn:s:2']), 'urn:s:2', 'urn:s:3')).toEqual(
    hosting(['urn:s:1', 'urn:s:2', 'urn:s:3']),
  )
  expect(added(relationship(['urn:s:1', 'urn:s:2']), 'urn:s:1')).toBeUndefined()
  const two = [relationship('urn:s:1'), { ...relationship('urn:s:2'), datasetId: 'urn:d:2' }]
  expect(added(two, 'urn:s:2', 'urn:s:3')).toEqual(hosting(['urn:s:1', 'urn:s:3']))
})

it('marks a learnt interval, and never overwrites what people wrote', () => {
  const sensor = (interval: Entity[string]): Entity => ({
    id: id('Sensor'),
    type: sosa('Sensor'),
    [qoi('updateinterval')]: interval,
  })
  const learnt = learntInterval(10)
  expect(learnt).toEqual({
    [qoi('updateinterval')]: {
      ...property(10),
      [qoi('unit')]: property('seconds'),
      [ours('basis')]: property('learnt'),
    },
  })
  expect(mayLearnInterval(sensor(property('NA')))).toBe(true)
  expect(mayLearnInterval(sensor(learnt[qoi('updateinterval')]))).toBe(true)
  expect(mayLearnInterval({ id: id('Sensor'), type: sosa('Sensor') })).toBe(true)
  expect(mayLearnInterval(sensor(property(60)))).toBe(false)
  const [, declaredSensor] = siteEntities(sighting([reading('Temp', 1)], { declared }), own)
  expect(mayLearnInterval(declaredSensor!)).toBe(false)
})

it('creates entities that the NGSI-LD parser reads back unchanged', () => {
  const sightings = sighting([reading('Küche [1]', 'x', { unitText: '?' }), reading('b', 2)], { declared })
  for (const entity of siteEntities(sightings, own))
    expect(parseEntity(JSON.parse(JSON.stringify(entity)), coreContext)).toEqual(entity)
})
