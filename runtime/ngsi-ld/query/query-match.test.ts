/** Evaluation of queries, case by case: every kind of attribute, path and operator. */
import { describe, expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { QueryTree } from './query.ts'
import { compileQuery, type QueryTimes } from './query-match.ts'
import { parseQuery } from './query-parse.ts'

const parse = (text: string): QueryTree => parseQuery(text, (term) => term)

const entity: Entity = {
  id: 'urn:e:1',
  type: 'T',
  temp: {
    type: 'Property',
    value: 20.5,
    unitCode: 'CEL',
    observedAt: '2024-01-01T00:00:00Z',
    accuracy: { type: 'Property', value: 0.1 },
  },
  name: { type: 'Property', value: 'Eiffel Tower' },
  open: { type: 'Property', value: true },
  tags: { type: 'Property', value: ['a', 'b', 3] },
  when: { type: 'Property', value: '2024-05-01T12:00:00.000Z' },
  typed: { type: 'Property', value: { '@type': 'DateTime', '@value': '2024-05-01T12:00:00Z' } },
  day: { type: 'Property', value: '2024-05-01' },
  clock: { type: 'Property', value: '12:30:00Z' },
  address: { type: 'Property', value: { city: 'Berlin', geo: { floor: 3 }, list: [{ x: 1 }] } },
  color: { type: 'LanguageProperty', languageMap: { en: 'red', fr: ['rouge', 'vermeil'] } },
  partOf: { type: 'Relationship', object: 'urn:e:2', since: { type: 'Property', value: 7 } },
  parts: { type: 'Relationship', object: ['urn:e:3', 'urn:e:4'] },
  list: { type: 'ListRelationship', objectList: [{ object: 'urn:e:5' }] },
  seen: { type: 'ListProperty', valueList: [1, 2] },
  use: { type: 'VocabProperty', vocab: 'commercial' },
  doc: { type: 'JsonProperty', json: { id: 'x', n: 1 } },
  constructorless: { type: 'Property', value: 0 },
  speed: [
    { type: 'Property', value: 10 },
    { type: 'Property', value: 50, datasetId: 'urn:d:1' },
  ],
}

const times: QueryTimes = {
  created: Date.UTC(2024, 0, 1),
  modified: Date.UTC(2024, 5, 1),
  attributes: {
    temp: [Date.UTC(2024, 0, 2), Date.UTC(2024, 0, 3)],
    'speed urn:d:1': [0, Date.UTC(2025, 0, 1)],
  },
}

describe('matching q', () => {
  it.each([
    ['temp', true],
    ['none', false],
    ['!none', true],
    ['!temp', false],
    ['temp==20.5', true],
    ['temp!=20.5', false],
    ['temp!=20', true],
    ['none!=20', false],
    ['temp>20', true],
    ['temp>20.5', false],
    ['temp>=20.5', true],
    ['temp<20.5', false],
    ['temp<=20.5', true],
    ['temp==20..21', true],
    ['temp!=20..21', false],
    ['temp==1,20.5', true],
    ['temp!=1,20.5', false],
    ['temp=="20.5"', false],
    ['temp!="20.5"', true],
    ['temp>"1"', false],
    ['temp~=20', false],
    ['temp!~=99', false],
    ['name=="Eiffel Tower"', true],
    ['name==eiffel', false],
    ['name>"A"', true],
    ['name=="A".."Z"', true],
    ['name~=^Eiffel', true],
    ['name~=Tower', true],
    ['name!~=^Eiffel', false],
    ['name!~=^Pisa', true],
    ['name==1', false],
    ['open==true', true],
    ['open==false', false],
    ['open!=false', true],
    ['open==1', false],
    ['tags=="a"', true],
    ['tags==3', true],
    ['tags!="a"', false],
    ['tags!="z"', true],
    ['tags>2', true],
    ['tags~=^b', true],
    ['tags!~=^b', false],
    ['when>2024-05-01T11:59:59Z', true],
    ['when==2024-05-01T12:00:00Z', true],
    ['when=="2024-05-01T12:00:00Z"', false],
    ['typed==2024-05-01T12:00:00.000Z', true],
    ['typed<2024-05-01T12:00:00Z', false],
    ['name>2024-05-01T12:00:00Z', false],
    ['day>2024-04-30', true],
    ['day==2024-05-01..2024-05-02', true],
    ['when>2024-04-30', false],
    ['clock>12:29:59.5Z', true],
    ['clock>13:00:00Z', false],
    ['address[city]=="Berlin"', true],
    ['address[geo.floor]>=3', true],
    ['address[list.0.x]==1', true],
    ['address[postcode]', false],
    ['address[postcode]!="x"', false],
    ['address[city]', true],
    ['address[constructor]', false],
    ['address=="Berlin"', false],
    ['address!="Berlin"', true],
    ['color[en]=="red"', true],
    ['color[en]=="rouge"', false],
    ['color[*]=="rouge"', true],
    ['color[*]!="red"', false],
    ['color[*]!="blue"', true],
    ['color[fr]=="vermeil"', true],
    ['color=="red"', true],
    ['color=="blue-green"', false],
    ['partOf=="urn:e:2"', true],
    ['partOf==urn:e:2', true],
    ['partOf!=urn:e:2', false],
    ['partOf>"urn:a"', false],
    ['partOf~=urn', false],
    ['partOf!~=xyz', false],
    ['partOf.since==7', true],
    ['parts==urn:e:4', true],
    ['parts!=urn:e:4', false],
    ['list==urn:e:5', true],
    ['seen==2', true],
    ['use==commercial', false],
    ['use=="https://uri.etsi.org/ngsi-ld/default-context/commercial"', true],
    ['doc[n]==1', true],
    ['temp.accuracy<0.2', true],
    ['temp.accuracy.none', false],
    ['temp.unitCode=="CEL"', true],
    ['temp.unitCode!="CEL"', false],
    ['temp.observedAt==2024-01-01T00:00:00.000Z', true],
    ['temp.observedAt<2024-01-01T00:00:00Z', false],
    ['temp.value==20.5', false],
    ['temp.type=="Property"', false],
    ['temp.createdAt==2024-01-02T00:00:00Z', true],
    ['temp.modifiedAt>2024-01-02T00:00:00Z', true],
    ['name.modifiedAt', false],
    ['createdAt==2024-01-01T00:00:00Z', true],
    ['modifiedAt>2024-01-01T00:00:00Z', true],
    ['speed==10', true],
    ['speed==50', true],
    ['speed!=10', true],
    ['speed>60', false],
    ['speed.datasetId==urn:d:1', true],
    ['speed.modifiedAt>=2025-01-01T00:00:00Z', true],
    ['id=="urn:e:1"', false],
    ['type=="T"', false],
    ['constructor', false],
    ['temp>20;open==true', true],
    ['temp>20;open==false', false],
    ['temp>30|open==true', true],
    ['temp>30|open==false;name', false],
    ['(temp>30|open==true);name', true],
  ])('%s is %j', (text, expected) => {
    expect(compileQuery(parse(text))(entity, times)).toBe(expected)
  })

  it('has no system times unless they are given', () => {
    expect(compileQuery(parse('createdAt'))(entity)).toBe(false)
    expect(compileQuery(parse('temp.createdAt'))(entity)).toBe(false)
  })

  it('orders text by code point', () => {
    const of = (value: string): Entity => ({ id: 'urn:e', type: 'T', a: { type: 'Property', value } })
    expect(compileQuery(parse('a>"\uffff"'))(of('😀'))).toBe(true)
    expect(compileQuery(parse('a<"\uffff"'))(of('😀'))).toBe(false)
    expect(compileQuery(parse('a<"😁"'))(of('😀'))).toBe(true)
    expect(compileQuery(parse('a>="ab"'))(of('abc'))).toBe(true)
    expect(compileQuery(parse('a>="abc"'))(of('ab'))).toBe(false)
  })

  it('rejects terms on linked entities without a follow function', () => {
    expect(() => compileQuery(parse('partOf{name}=="x"'))).toThrow(/are not supported here/)
  })
})
