/**
 * One entity for each kind of thing that NGSI-LD can say (GS CIM 009, 4.5), so that a broker that cannot take one of them
 * shows which.
 */

export interface KindEntity {
  readonly id: string
  readonly [name: string]: unknown
}

/** What each entity has beside id and type; `at` is the time of what was observed. */
const kinds = (at: string): Readonly<Record<string, Readonly<Record<string, unknown>>>> => ({
  number: { level: { type: 'Property', value: 1.5, unitCode: 'CMT', observedAt: at } },
  text: { name: { type: 'Property', value: 'Zürich "é" 水' } },
  boolean: { open: { type: 'Property', value: false, observedAt: at } },
  object: { address: { type: 'Property', value: { street: 'Main', numbers: [1, 2], deep: { a: null } } } },
  list: { series: { type: 'Property', value: [3, 1, 2] } },
  'date-time': {
    since: { type: 'Property', value: { '@type': 'DateTime', '@value': '2026-01-01T00:00:00Z' } },
  },
  relationship: { partOf: { type: 'Relationship', object: 'urn:ngsi-ld:InteropPlace:1' } },
  relationships: { near: { type: 'Relationship', object: ['urn:ngsi-ld:P:1', 'urn:ngsi-ld:P:2'] } },
  place: { location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [8.5, 47.4] } } },
  language: { title: { type: 'LanguageProperty', languageMap: { en: 'Tank', de: 'Kessel' } } },
  'sub-attributes': {
    level: {
      type: 'Property',
      value: 7,
      observedAt: at,
      accuracy: { type: 'Property', value: 0.1 },
      measuredBy: { type: 'Relationship', object: 'urn:ngsi-ld:InteropSensor:1' },
    },
  },
  datasets: {
    level: [
      { type: 'Property', value: 1, observedAt: at },
      { type: 'Property', value: 2, observedAt: at, datasetId: 'urn:ngsi-ld:dataset:b' },
    ],
  },
  scope: { scope: '/site/a', level: { type: 'Property', value: 1 } },
  vocabulary: { state: { type: 'VocabProperty', vocab: 'running' } },
  json: { raw: { type: 'JsonProperty', json: { id: 1, type: 'plain', '@odd': true } } },
  'list-property': { steps: { type: 'ListProperty', valueList: [2, 1] } },
})

export const kindNames: readonly string[] = [...Object.keys(kinds('')), 'types']

/** The entities of a run; ids as the site makes them. */
export function kindsOf(id: (name: string) => string): readonly KindEntity[] {
  const plain = Object.entries(kinds('2026-01-01T00:00:00Z')).map(([name, attributes]) => ({
    id: id(name),
    type: 'InteropThing',
    ...attributes,
  }))
  return [
    ...plain,
    { id: id('types'), type: ['InteropThing', 'InteropOther'], level: { type: 'Property', value: 1 } },
  ]
}
