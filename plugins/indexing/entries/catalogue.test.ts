/**
 * The index while entities are added and removed: in any order, by one broker or several, and removed
 * entirely.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { createPluginDatabase, type TestPluginDatabase } from '#test/kit/plugin-database.ts'
import { createBrokers, ownBroker } from './broker-rows.ts'
import { createCatalogue } from './catalogue.ts'
import type { BrokerEntity } from './entries.ts'
import { tables } from './tables.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const stream = 'http://purl.org/iot/ontology/iot-stream#'
const label = 'http://www.w3.org/2000/01/rdf-schema#label'

let database: TestPluginDatabase
beforeEach(() => {
  database = createPluginDatabase(tables)
})
afterEach(() => database.close())

const sent = (entity: Entity): BrokerEntity => ({
  id: entity.id,
  types: listOf(entity.type),
  entity: () => entity,
  text: () => JSON.stringify(entity),
  times: () => ({ created: 1000 }),
})
const point = (x: number, y: number) => ({
  type: 'GeoProperty',
  value: { type: 'Point', coordinates: [x, y] },
})
const to = (object: string) => ({ type: 'Relationship', object })
const platform = (x: number): Entity => ({
  id: 'urn:p',
  type: `${sosa}Platform`,
  location: point(x, 2),
  [label]: { type: 'Property', value: 'roof' },
})
const sensor: Entity = {
  id: 'urn:s',
  type: `${sosa}Sensor`,
  [`${sosa}isHostedBy`]: to('urn:p'),
  [`${sosa}observes`]: to('urn:o'),
}
const iot: Entity = {
  id: 'urn:i',
  type: `${stream}IotStream`,
  [`${stream}generatedBy`]: to('urn:s'),
}
const property: Entity = {
  id: 'urn:o',
  type: `${sosa}ObservableProperty`,
  [label]: { type: 'Property', value: 'temperature' },
}

/** All content of the index that does not depend on its history. */
const contents = () => ({
  spots: database.prepare('SELECT id, x0, z0 FROM spot JOIN node ON node.n = spot.n ORDER BY id, z0').all(),
  words: database
    .prepare(
      "SELECT id FROM word JOIN node ON node.n = word.rowid WHERE word MATCH 'roof AND temperature' ORDER BY id",
    )
    .pluck()
    .all(),
  derived: database.prepare('SELECT id, places FROM derived JOIN node USING (n) ORDER BY id').all(),
})

describe('the catalogue', () => {
  it('has the same content for every order of arrival', async () => {
    const all = [platform(1), sensor, iot, property]
    const orders = [
      [0, 1, 2, 3],
      [3, 2, 1, 0],
      [2, 0, 3, 1],
    ]
    const results = []
    for (const order of orders) {
      await database.reset()
      createBrokers(database, () => 0).add('here', 'own')
      const catalogue = createCatalogue(database, systemClock.monotonic)
      for (const at of order) await catalogue.take(ownBroker, { changed: [sent(all[at]!)] })
      results.push(contents())
    }
    expect(results[0]!.words).toEqual(['urn:i', 'urn:s'])
    expect(results[0]!.spots).toHaveLength(3)
    expect(results[1]).toEqual(results[0])
    expect(results[2]).toEqual(results[0])
  })

  it('moves sensors with their platform, and drops their places with it', async () => {
    createBrokers(database, () => 0).add('here', 'own')
    const catalogue = createCatalogue(database, systemClock.monotonic)
    await catalogue.take(ownBroker, { changed: [platform(1), sensor, iot, property].map(sent) })
    await catalogue.take(ownBroker, { changed: [sent(platform(5))] })
    expect(contents().spots.map((row) => (row as { x0: number }).x0)).toEqual([5, 5, 5])
    await catalogue.take(ownBroker, { changed: [], deleted: ['urn:p'] })
    expect(contents().spots).toEqual([])
    expect(contents().words).toEqual([])
  })

  it('is empty after the last entity is removed', async () => {
    createBrokers(database, () => 0).add('here', 'own')
    const catalogue = createCatalogue(database, systemClock.monotonic)
    const all = [platform(1), sensor, iot, property]
    await catalogue.take(ownBroker, { changed: all.map(sent) })
    await catalogue.take(ownBroker, { changed: [], deleted: all.map(({ id }) => id) })
    for (const table of [
      'node',
      'entry',
      'kind',
      'scalar',
      'link',
      'own',
      'derived',
      'place',
      'spot',
      'spot_of',
      'stale',
      'span',
    ])
      expect([table, database.prepare(`SELECT count(*) FROM ${table}`).pluck().get()]).toEqual([table, 0])
    expect(catalogue.countsOf(ownBroker)).toMatchObject({ sensor: 0, stream: 0 })
  })

  it('uses the entity of the first broker, and of the next one after its deletion', async () => {
    const brokers = createBrokers(database, () => 0)
    brokers.add('here', 'own')
    const other = brokers.add('http://there', 'registered').b
    const catalogue = createCatalogue(database, systemClock.monotonic)
    await catalogue.take(other, { changed: [sent(platform(7))] })
    await catalogue.take(ownBroker, { changed: [sent(platform(1))] })
    expect(contents().spots).toMatchObject([{ x0: 1 }])
    await catalogue.take(ownBroker, { changed: [], deleted: ['urn:p'] })
    expect(contents().spots).toMatchObject([{ x0: 7 }])
    expect(catalogue.countsOf(other)).toMatchObject({ platform: 1 })
  })

  it('a full read removes the entries it did not find', async () => {
    createBrokers(database, () => 0).add('here', 'own')
    const catalogue = createCatalogue(database, systemClock.monotonic)
    await catalogue.take(ownBroker, { changed: [platform(1), sensor].map(sent) })
    catalogue.beginLoad(ownBroker)
    await catalogue.take(ownBroker, { changed: [sent(sensor)] })
    expect(await catalogue.endLoad(ownBroker)).toBe(1)
    expect(catalogue.entity('urn:p')).toBeUndefined()
    expect(catalogue.entity('urn:s')).toBeDefined()
  })
})
