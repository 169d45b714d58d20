/**
 * Schemas from a folder: types and queries without code, subtypes by alternativeType, computed fields.
 * Mistakes are reported with file and line while everything else is served.
 */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { printType } from 'graphql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildSchema } from '#plugins/search/reads/graphql-schema.ts'
import { readSchemaFolder } from '#plugins/search/schema/schema-folder.ts'
import {
  alternativeType,
  type Entity,
  fieldEntities,
  link,
  property,
  rdfsLabel,
  type SearchSite,
  sosa,
  startSearchSite,
} from '#test/kit/search-site.ts'

const examples = join(import.meta.dirname, '..', '..', '..', 'plugins', 'search', 'examples')
const siemens = 'http://www.siemens.com/iotcrawler/ontologies#'

describe('the bundled schemas', () => {
  let site: SearchSite

  const sensor = (name: string, alternative?: string): Entity => ({
    id: `urn:ngsi-ld:Sensor:${name}`,
    type: `${sosa}Sensor`,
    [rdfsLabel]: property(name),
    ...(alternative !== undefined && { [alternativeType]: property(alternative) }),
  })

  beforeAll(async () => {
    site = await startSearchSite({ SELVEDGE_SEARCH_SCHEMA_FOLDER: examples })
    await site.create([
      sensor('plain'),
      sensor('temperature', 'http://Agt/TemperatureSensor'),
      sensor('indoor', 'http://Agt/IndoorTemperatureSensor'),
      {
        id: 'urn:ngsi-ld:Sensor:typed',
        type: 'http://Agt/IndoorTemperatureSensor',
        [rdfsLabel]: property('typed'),
      },
      ...['Battery', 'Grid'].map((category) => ({
        id: `urn:ngsi-ld:Platform:${category}`,
        type: `${sosa}EnergyPlatform`,
        [`${siemens}category`]: property(category),
        [`${siemens}simulated`]: property(category === 'Grid'),
      })),
      ...['Clouds', 'Sun'].map((weather) => ({
        id: `urn:ngsi-ld:AreaOfInterest:${weather}`,
        type: `${siemens}AreaOfInterest`,
        [`${siemens}weatherState`]: property(weather),
        [`${siemens}assigned`]: link(['urn:ngsi-ld:Platform:Battery', 'urn:ngsi-ld:Platform:Grid']),
      })),
      ...fieldEntities({ device: 'd0', field: 'Temperature', value: 1 }),
    ])
  })

  afterAll(() => site.close())

  it('select a subtype with its own subtypes, and all of them by the supertype', async () => {
    const found = await site.data<Record<string, { label: string }[]>>(
      `{ temperatureSensors { id label alternativeType }
         indoorTemperatureSensors { label }
         sensors(limit: 100) { label } 
         systems(limit: 100) { label } }`,
    )
    const labels = Object.fromEntries(
      Object.entries(found).map(([name, all]) => [name, all.map(({ label }) => label).toSorted()]),
    )
    expect(labels['temperatureSensors']).toEqual(['indoor', 'temperature', 'typed'])
    expect(labels['indoorTemperatureSensors']).toEqual(['indoor', 'typed'])
    expect(labels['sensors']).toEqual(expect.arrayContaining(['plain', 'temperature', 'indoor', 'typed']))
    expect(labels['systems']).toEqual(labels['sensors'])
  })

  it('page and count over both representations of subtypes', async () => {
    const { all, second, one } = await site.data<Record<string, never>>(
      `{ all: temperatureSensorsConnection(first: 2) { totalCount pageInfo { hasNextPage } nodes { label } }
         second: temperatureSensors(offset: 2, limit: 5) { label }
         one: temperatureSensors(label: "indoor") { label } }`,
    )
    expect(all).toMatchObject({ totalCount: 3, pageInfo: { hasNextPage: true } })
    expect(second).toEqual([{ label: 'typed' }])
    expect(one).toEqual([{ label: 'indoor' }])
  })

  it('accept a type name instead of its class', async () => {
    const { sensors } = await site.data('{ sensors(alternativeType: "TemperatureSensor") { label } }')
    expect(sensors).toEqual([{ label: 'temperature' }])
  })

  it('compute fields by their rules', async () => {
    const { areasOfInterest, ePlatforms } = await site.data<Record<string, unknown>>(
      '{ areasOfInterest { weatherState inferredAssigned { category } } ePlatforms(simulated: true) { category } }',
    )
    expect(areasOfInterest).toEqual([
      { weatherState: 'Clouds', inferredAssigned: [{ category: 'Battery' }] },
      { weatherState: 'Sun', inferredAssigned: [] },
    ])
    expect(ePlatforms).toEqual([{ category: 'Grid' }])
  })

  it('have no mistakes', async () => {
    const { texts, mistakes } = readSchemaFolder(examples)
    expect(texts.map(({ name }) => name)).toEqual(readdirSync(examples).toSorted())
    expect([...mistakes, ...(await buildSchema(texts)).mistakes]).toEqual([])
  })
})

describe('a schema with mistakes', () => {
  const mistakesOf = async (text: string): Promise<string[]> => {
    const { mistakes } = await buildSchema([{ name: 'mine.graphqls', text }])
    return mistakes.map(({ place, message }) => `${place} ${message}`)
  }

  it.each([
    ['type T {\n  a: Int\n', 'mine.graphqls:3:1 Syntax Error: Expected Name, found <EOF>.'],
    ['\nextend type Query { things: [Thing] }', 'mine.graphqls:2:30 There is no type Thing'],
    [
      'type T @resource(class: "urn:t", subClassOf: ["Nothing"])',
      'sub-class of Nothing, which is not a type',
    ],
    [
      'type A @resource(class: "urn:a", subClassOf: ["B"])\ntype B @resource(class: "urn:b", subClassOf: ["A"])',
      'is a sub-class of itself',
    ],
    ['type T { a: Int }\ntype T { a: Int }', 'mine.graphqls:2:1 T is declared twice'],
    ['extend type Query { t: Int }\nextend type Query { t: Int }', 'Query has a field t already'],
    ['type T @resource(klass: "urn:t")', '@resource has no argument klass'],
    ['type T @resourse(class: "urn:t")', 'There is no directive @resourse'],
    ['extend type Query { things(of: Sensor): [Sensor] }', 'Sensor is an output type'],
    ['extend type Sensor { of: SensorInput }', 'SensorInput is an input'],
    ['{ sensors { id } }', 'declares types, inputs, scalars and directives only'],
  ])('is reported with its place: %s', async (text, complaint) => {
    expect((await mistakesOf(text)).join('\n')).toContain(complaint)
  })

  it('is not reported for repeated platform types and queries, as in the original files', async () => {
    const text =
      'type Sensor @resource(class: "urn:other") { id: Int more: Float @attribute(uri: "https://a.example/more") }\n' +
      'type Query { sensors: [Sensor] }'
    expect(await mistakesOf(text)).toEqual([])
    const { schema } = await buildSchema([{ name: 'mine.graphqls', text }])
    const sensor = printType(schema.getType('Sensor')!)
    expect(sensor).toContain('id: String!')
    expect(sensor).toContain('more: Float')
    expect(sensor).toContain('madeObservation')
  })

  it('is ignored and reported to operators, and the rest is served', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'selvedge-schemas-'))
    writeFileSync(join(folder, 'bad.graphqls'), 'type X {')
    writeFileSync(
      join(folder, 'good.graphql'),
      'extend type Query { rooms: [Room] }\ntype Room @resource(class: "https://uri.etsi.org/ngsi-ld/default-context/Room") { floor: Int }',
    )
    writeFileSync(join(folder, 'notes.txt'), 'no schema')
    const site = await startSearchSite({ SELVEDGE_SEARCH_SCHEMA_FOLDER: folder })
    await site.create([{ id: 'urn:x:1', type: 'Room', floor: property(3) }])
    expect(await site.data('{ rooms { type floor } sensors { id } }')).toEqual({
      rooms: [{ type: 'https://uri.etsi.org/ngsi-ld/default-context/Room', floor: 3 }],
      sensors: [],
    })
    const ready = await (await fetch(`${site.url}/health/ready`)).text()
    expect(ready).toContain('schema bad.graphqls:1:9')
    await site.close()
    rmSync(folder, { recursive: true })
  })
})
