/** What a migration derives from the documents that are there is what each write of them derives. */
import { expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { scalarKinds } from '#store/entities/entity-index.ts'
import { createUplinkStates } from '#store/tables/uplink-states.ts'
import { createEntityTables } from '#test/kit/entity-tables.ts'
import { migrations } from './database-schema.ts'

const square = [
  [
    [0, 0],
    [1, 0],
    [1, 1],
    [0, 0],
  ],
]
const entities = [
  {
    id: 'urn:x:1',
    type: 'T',
    number: { type: 'Property', value: 1, unit: { type: 'Property', value: ['a', 'b'] } },
    list: { type: 'Property', value: [1, 2] },
    object: { type: 'Property', value: { '@type': 'Date', '@value': '2026-01-01' } },
    several: [
      { type: 'Property', value: 1 },
      { type: 'Property', value: [1], datasetId: 'urn:d:1' },
    ],
    point: { type: 'GeoProperty', value: { type: 'Point', coordinates: [8, 52] } },
    high: { type: 'GeoProperty', value: { type: 'Point', coordinates: [8, 52, 70] } },
    area: { type: 'GeoProperty', value: { type: 'Polygon', coordinates: square } },
  },
  {
    id: 'urn:x:2',
    type: ['T', 'U'],
    scope: ['/a', '/b'],
    number: { type: 'Property', value: 'one' },
    list: { type: 'ListProperty', valueList: [1] },
    object: { type: 'JsonProperty', json: { a: 1 } },
    scalar: { type: 'JsonProperty', json: 1 },
    texts: { type: 'LanguageProperty', languageMap: { en: 'a', de: ['b', 'c'] } },
    one: { type: 'Relationship', object: 'urn:x:1' },
    many: { type: 'Relationship', object: ['urn:x:1', 'urn:x:3'] },
    row: { type: 'ListRelationship', objectList: ['urn:x:1'] },
    word: { type: 'VocabProperty', vocab: 'a' },
    words: { type: 'VocabProperty', vocab: ['a', 'b'] },
  },
] as unknown as readonly Entity[]

it('marks arrays and objects in the scalar index as writes do', () => {
  const tables = createEntityTables()
  const { database } = tables
  tables.fill(entities)
  for (const name of new Set(entities.flatMap((entity) => Object.keys(entity)))) {
    const i = tables.ports.nameOf(name)
    if (i !== undefined) database.prepare('INSERT INTO name (i, text) VALUES (?, ?)').run(i, name)
  }
  const before = tables.indexed()
  const { changes } = database.prepare('DELETE FROM scalar WHERE kind = ?').run(scalarKinds.whole)
  expect(changes).toBe(9)
  database.exec(migrations.find(({ version }) => version === 45)!.sql)
  expect(tables.indexed()).toEqual(before)
})

it('moves what uplinks let go into rows', () => {
  const { database } = createEntityTables()
  const losses = { '7 budget': { from: 1, to: 2, count: 3, reason: 'budget' }, '8 thinned': { from: 4 } }
  const put = database.prepare('INSERT INTO uplink (id, state) VALUES (?, ?)')
  put.run('urn:up', JSON.stringify({ position: { n: 1, at: 2 }, losses }))
  put.run('urn:calm', JSON.stringify({ position: { n: 1, at: 2 } }))
  database.exec('DROP TABLE uplink_loss')
  database.exec(migrations.find(({ version }) => version === 48)!.sql)
  const states = createUplinkStates(database)
  expect(states.losses('urn:up').map(({ of, loss }) => [of, JSON.parse(loss)])).toEqual(
    Object.entries(losses),
  )
  expect(states.losses('urn:calm')).toEqual([])
  expect(states.get('urn:up')).toBe('{"position":{"n":1,"at":2}}')
})
