/**
 * Values that people and components wrote to a device's entities are preserved, through further observations,
 * further fields and restarts. Declarations in the settings only fill missing values, also for devices older
 * than their declaration. Each test has a data folder of its own.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const sosa = (name: string): string => `http://www.w3.org/ns/sosa/${name}`
const qoi = (name: string): string => `https://w3id.org/iot/qoi#${name}`
const label = 'http://www.w3.org/2000/01/rdf-schema#label'
const schemaName = 'http://schema.org/name'
const timeSource = 'urn:selvedge:ns:timeSource'
const basis = 'urn:selvedge:ns:basis'
const ids = {
  platform: 'urn:ngsi-ld:Platform:roof',
  sensor: 'urn:ngsi-ld:Sensor:roof:temp',
  stream: 'urn:ngsi-ld:IotStream:roof:temp',
  property: 'urn:ngsi-ld:ObservableProperty:roof:temp',
  observation: 'urn:ngsi-ld:StreamObservation:roof:temp',
}
const result = sosa('hasSimpleResult')
const place = (...coordinates: number[]) => ({ type: 'GeoProperty', value: { type: 'Point', coordinates } })
const property = (value: unknown, more: object = {}) => ({ type: 'Property', value, ...more })
const noon = Date.UTC(2026, 2, 1, 12) / 1000

let folder: string
let gateway: GatewayInside

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-test-'))
  gateway = await startGatewayInside(folder)
})
afterEach(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

async function restart(devices: Readonly<Record<string, unknown>>): Promise<void> {
  await gateway.close()
  gateway = await startGatewayInside(folder, { SELVEDGE_PROVISIONING_DEVICES: JSON.stringify(devices) })
}

async function observe(field: string, value: number, more: object = {}): Promise<void> {
  const pack = [{ bn: 'roof:', n: field, v: value, u: 'Cel', ...more }]
  const answer = await gateway.ask('POST', '/senml', {
    body: pack,
    headers: { 'Content-Type': 'application/senml+json' },
  })
  expect([answer.status, answer.text]).toEqual([204, ''])
}

async function patch(id: string, fragment: object): Promise<void> {
  expect((await gateway.send('PATCH', `/ngsi-ld/v1/entities/${id}/attrs`, fragment)).status).toBe(204)
}

const entity = async (id: string): Promise<Record<string, unknown>> =>
  (await gateway.get(`/ngsi-ld/v1/entities/${id}`)).json()

/** Value and unit of each observation, in order of their times. */
async function history(): Promise<[value: number, unitCode: string | undefined][]> {
  const answer = await gateway.get(`/ngsi-ld/v1/temporal/entities/${ids.observation}`)
  const instances = (answer.json() as Record<string, { value: number; unitCode?: string }[]>)[result]!
  return instances.map(({ value, unitCode }) => [value, unitCode])
}

it('keeps patched values through observations, further fields and a restart', async () => {
  const devices = { roof: { name: 'Roof', location: [8, 50], fields: { temp: { min: -20, max: 50 } } } }
  await restart(devices)
  await observe('temp', 20)
  expect(await entity(ids.sensor)).toMatchObject({
    location: place(8, 50),
    [qoi('min')]: property(-20),
    [qoi('max')]: property(50),
  })
  const written: [string, object][] = [
    [ids.platform, { location: place(1, 1), [schemaName]: property('Attic') }],
    [
      ids.sensor,
      {
        location: place(2, 2),
        [qoi('min')]: property(-5),
        [qoi('max')]: property('NA'),
        [qoi('updateinterval')]: property(77, { [qoi('unit')]: property('seconds') }),
      },
    ],
    [ids.stream, { [qoi('hasQuality')]: { type: 'Relationship', object: 'urn:ngsi-ld:QoI:roof' } }],
    [ids.property, { [label]: property('air temperature') }],
    [ids.observation, { note: property('behind the chimney') }],
  ]
  for (const [id, fragment] of written) await patch(id, fragment)
  const isKept = async (): Promise<void> => {
    for (const [id, fragment] of written) expect(await entity(id)).toMatchObject(fragment)
  }

  await observe('temp', 21)
  await isKept()
  await observe('humidity', 55, { u: '%RH' })
  await isKept()
  expect((await entity(ids.platform))[sosa('hosts')]).toEqual({
    type: 'Relationship',
    object: [ids.sensor, 'urn:ngsi-ld:Sensor:roof:humidity'],
  })
  await restart(devices)
  await isKept()
  await observe('temp', 22)
  await observe('co2', 400, { u: 'ppm' })
  await isKept()
  expect(await entity(ids.observation)).toMatchObject({ [result]: { value: 22, unitCode: 'CEL' } })
})

it('fills in declarations made after the device was seen, and overwrites nothing that people wrote', async () => {
  await observe('temp', 20)
  await patch(ids.sensor, { [qoi('max')]: property(99) })
  await patch(ids.platform, { location: place(1, 1) })
  const temp = { label: 'Air', min: -20, max: 50, updateInterval: 60, regexp: '^x' }
  await restart({ roof: { name: 'Roof', location: [8, 50], fields: { temp } } })
  await observe('temp', 21)
  const filled = {
    [qoi('min')]: property(-20),
    [qoi('max')]: property(99),
    [qoi('regexp')]: property('^x'),
    [qoi('updateinterval')]: property(60, {
      [qoi('unit')]: property('seconds'),
      [basis]: property('declared'),
    }),
    location: place(8, 50),
  }
  expect(await entity(ids.sensor)).toMatchObject(filled)
  expect(await entity(ids.platform)).toMatchObject({ location: place(1, 1), [schemaName]: property('Roof') })
  expect(await entity(ids.stream)).toMatchObject({ location: place(8, 50) })
  expect(await entity(ids.property)).toMatchObject({ [label]: property('temp') })

  // A later change of the declaration does not change existing values.
  await restart({ roof: { name: 'Tower', location: [9, 51], fields: { temp: { min: 0 } } } })
  await observe('temp', 22)
  expect(await entity(ids.sensor)).toMatchObject(filled)
  expect(await entity(ids.platform)).toMatchObject({ [schemaName]: property('Roof') })
})

it('gives each observation the unit of its frame, whatever was patched in between', async () => {
  await observe('temp', 20, { t: noon })
  await patch(ids.observation, { [result]: property(7, { observedAt: '2026-03-01T12:00:01Z' }) })
  await observe('temp', 21, { t: noon + 2 })
  expect((await entity(ids.observation))[result]).toEqual(
    property(21, {
      unitCode: 'CEL',
      observedAt: '2026-03-01T12:00:02Z',
      [timeSource]: property('device'),
    }),
  )
  await patch(ids.observation, { [result]: property(280, { unitCode: 'KEL', note: property('by hand') }) })
  await observe('temp', 22, { t: noon + 3 })
  expect((await entity(ids.observation))[result]).toMatchObject({
    value: 22,
    unitCode: 'CEL',
    note: property('by hand'),
  })
  expect(await history()).toEqual([
    [20, 'CEL'],
    [7, undefined],
    [21, 'CEL'],
    [22, 'CEL'],
    // Without observedAt, which a complete history also returns (GS CIM 009, 5.7.3.4).
    [280, 'KEL'],
  ])
})

it('leaves a result alone that a client added beside its own', async () => {
  await observe('temp', 20, { t: noon })
  const estimate = property(19, { datasetId: 'urn:ngsi-ld:dataset:estimate' })
  await patch(ids.observation, { [result]: [estimate, property(20, { observedAt: '2026-03-01T12:00:00Z' })] })
  await observe('temp', 21, { t: noon + 1 })
  const results = (await entity(ids.observation))[result] as { datasetId?: string }[]
  expect(
    results.toSorted((a, b) => Number(b.datasetId !== undefined) - Number(a.datasetId !== undefined)),
  ).toEqual([
    estimate,
    property(21, { unitCode: 'CEL', observedAt: '2026-03-01T12:00:01Z', [timeSource]: property('device') }),
  ])
})

it('keeps no text of the unit that a device had before', async () => {
  await observe('temp', 1, { u: 'furlong', t: noon })
  await observe('temp', 2, { u: 'Cel', t: noon + 1 })
  expect((await entity(ids.observation))[result]).toEqual(
    property(2, { unitCode: 'CEL', observedAt: '2026-03-01T12:00:01Z', [timeSource]: property('device') }),
  )
  await observe('temp', 3, { u: 'furlong', t: noon + 2 })
  expect((await entity(ids.observation))[result]).not.toHaveProperty('unitCode')
})

it('keeps the unit of the newest reading when a frame from before a change of unit arrives late', async () => {
  const current = `${ids.observation}?options=sysAttrs`
  await observe('temp', 20, { t: noon + 10 })
  const written = await entity(current)
  await observe('temp', 290, { u: 'K', t: noon + 5 })
  await observe('temp', 291, { u: 'K', t: noon + 6 })
  // Nothing current was written, so nobody is notified.
  expect(await entity(current)).toEqual(written)
  expect(written[result]).toMatchObject({ value: 20, unitCode: 'CEL' })
  await observe('temp', 21, { t: noon + 20 })
  expect((await entity(ids.observation))[result]).toMatchObject({ value: 21, unitCode: 'CEL' })
  expect(new Map(await history())).toEqual(
    new Map([
      [290, 'KEL'],
      [291, 'KEL'],
      [20, 'CEL'],
      [21, 'CEL'],
    ]),
  )
})

it('states the time source of the newest reading, even if a frame with its own time arrives late', async () => {
  await observe('temp', 20)
  await observe('temp', 10, { t: noon })
  expect((await entity(ids.observation))[result]).toMatchObject({
    value: 20,
    [timeSource]: property('gateway'),
  })
  await observe('temp', 30, { t: Date.now() / 1000 + 60 })
  expect((await entity(ids.observation))[result]).toMatchObject({
    value: 30,
    [timeSource]: property('device'),
  })
  expect((await history()).map(([value]) => value)).toEqual([10, 20, 30])
})
