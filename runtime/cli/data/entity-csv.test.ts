/** Lossless conversion of entities to rows, to CSV, and back. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCsvReader, csvRow } from '#cli/terminal/csv.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { createRowReader, entityColumns, toRows, unknownColumns } from './entity-csv.ts'

const throughText = (entities: readonly JsonObject[], pieces = 1): readonly JsonObject[] => {
  const text = [entityColumns, ...entities.flatMap(toRows)].map(csvRow).join('')
  const size = Math.max(1, Math.ceil(text.length / pieces))
  const csv = createCsvReader()
  const rows: (readonly string[])[] = []
  for (let start = 0; start < text.length; start += size)
    rows.push(...csv.read(text.slice(start, start + size)))
  rows.push(...csv.end())
  const [header, ...others] = rows
  const reader = createRowReader(header!)
  return [...others.flatMap((row) => reader.read(row)), ...reader.end()]
}

describe('entities in rows', () => {
  it('are the same after reading them back', () => {
    const value = fc.jsonValue({ maxDepth: 2 }).filter((json) => json !== null)
    const text = fc.oneof(fc.string(), fc.constantFrom('1', 'true', '', 'a,b', '"x"', 'two\nlines', '{}'))
    const instance = fc.oneof(
      fc.record({ type: fc.constant('Property'), value: fc.oneof(value, text) }),
      fc.record({
        type: fc.constant('Property'),
        value: fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
        observedAt: fc.constant('2025-01-01T00:00:00Z'),
        unitCode: fc.constant('CEL'),
        sub: fc.constant({ type: 'Property', value: 'a "b", c' }),
        expiresAt: fc.constant('2035-01-01T00:00:00Z'),
      }),
      fc.constantFrom(
        { type: 'Relationship', object: ['urn:a:1', 'urn:a:2'] },
        { type: 'LanguageProperty', languageMap: { en: 'x', de: ['y', 'z'] } },
        { type: 'JsonProperty', json: { a: null } },
        { type: 'ListRelationship', objectList: [{ object: 'urn:a:1' }] },
      ),
    )
    const attribute = fc.oneof(
      instance,
      fc.tuple(instance, instance).map(([a, b]) => [a, { ...b, datasetId: 'urn:d:1' }]),
    )
    const body = fc.record(
      {
        type: fc.constantFrom('T', ['T', 'U']),
        scope: fc.constantFrom('/a', ['/a', '/b']),
        expiresAt: fc.constant('2036-01-01T00:00:00Z'),
        a: attribute,
        b: attribute,
      },
      { requiredKeys: ['type'] },
    )
    fc.assert(
      fc.property(fc.array(body, { maxLength: 5 }), fc.integer({ min: 1, max: 50 }), (bodies, pieces) => {
        const entities = bodies.map(
          (one, at) => JSON.parse(JSON.stringify({ id: `urn:e:${at}`, ...one })) as JsonObject,
        )
        expect(throughText(entities, pieces)).toEqual(entities)
      }),
    )
  })

  it('have the value of each kind in the same column', () => {
    const vocab = { id: 'urn:a:1', type: 'Room', use: { type: 'VocabProperty', vocab: 'office' } }
    expect(toRows(vocab)[0]!.slice(4, 7)).toEqual(['use', 'VocabProperty', 'office'])
    expect(throughText([vocab])).toEqual([vocab])
  })

  it('may lack columns, and have Property as default kind', () => {
    const reader = createRowReader(['id', 'type', 'attribute', 'value'])
    reader.read(['urn:a:1', 'Room', 'temperature', '21.5'])
    expect(reader.end()).toEqual([
      { id: 'urn:a:1', type: 'Room', temperature: { type: 'Property', value: 21.5 } },
    ])
    expect(unknownColumns(['id', 'colour'])).toEqual(['colour'])
  })
})

describe('CSV', () => {
  it('is read with either line break, with quotes, and without a final line break', () => {
    const csv = createCsvReader()
    expect(csv.read('a,"b ""c"""\r\n\r\n"d\n')).toEqual([['a', 'b "c"']])
    expect(csv.read('e",f')).toEqual([])
    expect(csv.end()).toEqual([['d\ne', 'f']])
  })
})
