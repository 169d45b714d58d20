import { describe, expect, it } from 'vitest'
import { isGatewayError } from '#base/errors.ts'
import type { Entity } from './entity.ts'
import { attributesOf, printQuery, type QueryTree, scalarTermOf } from './query.ts'
import { compileQuery, matchesQuery, type QueryTimes } from './query-match.ts'
import { parseQuery } from './query-parse.ts'

const qoi = 'https://w3id.org/iot/qoi#'
const expand = (term: string): string => (term.startsWith('qoi:') ? qoi + term.slice(4) : term)
const parse = (text: string): QueryTree => parseQuery(text, expand)

const path = (...names: string[]) => ({ names })
const number = (value: number) => ({ kind: 'number', value })

describe('parsing q', () => {
  it.each<[string, unknown]>([
    ['a', { kind: 'exists', path: path('a') }],
    ['!a', { kind: 'absent', path: path('a') }],
    ['a==1', { kind: 'compare', path: path('a'), operator: '==', value: number(1) }],
    ['a!=-1.5e3', { kind: 'compare', path: path('a'), operator: '!=', value: number(-1500) }],
    ['a>=1', { kind: 'compare', path: path('a'), operator: '>=', value: number(1) }],
    ['a>1', { kind: 'compare', path: path('a'), operator: '>', value: number(1) }],
    ['a<=1', { kind: 'compare', path: path('a'), operator: '<=', value: number(1) }],
    ['a<1', { kind: 'compare', path: path('a'), operator: '<', value: number(1) }],
    ['a == 1 ; b', { kind: 'and', parts: [parse('a==1'), parse('b')] }],
    [
      'a=="x \\"y\\" ;|()\\u00e9"',
      { kind: 'compare', path: path('a'), operator: '==', value: { kind: 'string', value: 'x "y" ;|()é' } },
    ],
    [
      'a==true',
      { kind: 'compare', path: path('a'), operator: '==', value: { kind: 'boolean', value: true } },
    ],
    [
      'a==2020-01-01T00:00:00,5Z',
      {
        kind: 'compare',
        path: path('a'),
        operator: '==',
        value: { kind: 'dateTime', value: '2020-01-01T00:00:00,5Z' },
      },
    ],
    [
      'a>2020-01-01',
      { kind: 'compare', path: path('a'), operator: '>', value: { kind: 'date', value: '2020-01-01' } },
    ],
    [
      'a>12:00:00Z',
      { kind: 'compare', path: path('a'), operator: '>', value: { kind: 'time', value: '12:00:00Z' } },
    ],
    [
      'a==urn:x:1',
      { kind: 'compare', path: path('a'), operator: '==', value: { kind: 'name', value: 'urn:x:1' } },
    ],
    [
      'a==http://x.org/y?z=1',
      {
        kind: 'compare',
        path: path('a'),
        operator: '==',
        value: { kind: 'name', value: 'http://x.org/y?z=1' },
      },
    ],
    [
      'a==commercial',
      { kind: 'compare', path: path('a'), operator: '==', value: { kind: 'name', value: 'commercial' } },
    ],
    [
      'a==1,2,"x",true',
      {
        kind: 'compare',
        path: path('a'),
        operator: '==',
        value: {
          kind: 'list',
          items: [number(1), number(2), { kind: 'string', value: 'x' }, { kind: 'boolean', value: true }],
        },
      },
    ],
    [
      'a==1..5',
      {
        kind: 'compare',
        path: path('a'),
        operator: '==',
        value: { kind: 'range', low: number(1), high: number(5) },
      },
    ],
    [
      'a!=1.5..2.5',
      {
        kind: 'compare',
        path: path('a'),
        operator: '!=',
        value: { kind: 'range', low: number(1.5), high: number(2.5) },
      },
    ],
    [
      'a=="b".."c"',
      {
        kind: 'compare',
        path: path('a'),
        operator: '==',
        value: { kind: 'range', low: { kind: 'string', value: 'b' }, high: { kind: 'string', value: 'c' } },
      },
    ],
    [
      'a==2020-01-01T00:00:00Z..2021-01-01T00:00:00Z',
      {
        kind: 'compare',
        path: path('a'),
        operator: '==',
        value: {
          kind: 'range',
          low: { kind: 'dateTime', value: '2020-01-01T00:00:00Z' },
          high: { kind: 'dateTime', value: '2021-01-01T00:00:00Z' },
        },
      },
    ],
    ['a.b.c==1', { kind: 'compare', path: path('a', 'b', 'c'), operator: '==', value: number(1) }],
    [
      'a[b.c]==1',
      { kind: 'compare', path: { names: ['a'], member: ['b', 'c'] }, operator: '==', value: number(1) },
    ],
    ['a["b.c".d]', { kind: 'exists', path: { names: ['a'], member: ['b.c', 'd'] } }],
    [
      'a[*]=="x"',
      {
        kind: 'compare',
        path: { names: ['a'], member: ['*'] },
        operator: '==',
        value: { kind: 'string', value: 'x' },
      },
    ],
    [
      'a.observedAt>=2020-01-01T00:00:00Z',
      {
        kind: 'compare',
        path: path('a', 'observedAt'),
        operator: '>=',
        value: { kind: 'dateTime', value: '2020-01-01T00:00:00Z' },
      },
    ],
    [
      'modifiedAt>"2020-01-01T00:00:00Z"',
      {
        kind: 'compare',
        path: path('modifiedAt'),
        operator: '>',
        value: { kind: 'dateTime', value: '2020-01-01T00:00:00Z' },
      },
    ],
    ['a~=^b.*c$', { kind: 'match', path: path('a'), negated: false, pattern: '^b.*c$' }],
    ['a!~="b|c"', { kind: 'match', path: path('a'), negated: true, pattern: 'b|c' }],
    ['a~="say \\"x\\" \\d"', { kind: 'match', path: path('a'), negated: false, pattern: 'say "x" \\d' }],
    [
      '(a~=(b|c)d|e)',
      {
        kind: 'or',
        parts: [{ kind: 'match', path: path('a'), negated: false, pattern: '(b|c)d' }, parse('e')],
      },
    ],
    [
      'a~=b\\|c;d',
      {
        kind: 'and',
        parts: [{ kind: 'match', path: path('a'), negated: false, pattern: 'b\\|c' }, parse('d')],
      },
    ],
    ['a;b|c', { kind: 'or', parts: [{ kind: 'and', parts: [parse('a'), parse('b')] }, parse('c')] }],
    ['a;(b|c)', { kind: 'and', parts: [parse('a'), { kind: 'or', parts: [parse('b'), parse('c')] }] }],
    ['((a;b);c)', { kind: 'and', parts: [parse('a'), parse('b'), parse('c')] }],
    [`${qoi}min>=3`, { kind: 'compare', path: path(`${qoi}min`), operator: '>=', value: number(3) }],
    ['qoi:min>=3', { kind: 'compare', path: path(`${qoi}min`), operator: '>=', value: number(3) }],
    [
      'http://www.w3.org/ns/sosa/madeBySensor=="urn:x:1"',
      {
        kind: 'compare',
        path: path('http://www.w3.org/ns/sosa/madeBySensor'),
        operator: '==',
        value: { kind: 'string', value: 'urn:x:1' },
      },
    ],
    [
      'https://x.org/a?b=c~=d',
      { kind: 'match', path: path('https://x.org/a?b=c'), negated: false, pattern: 'd' },
    ],
    [
      'urn:x:a[b]!=1',
      { kind: 'compare', path: { names: ['urn:x:a'], member: ['b'] }, operator: '!=', value: number(1) },
    ],
    [
      `(${qoi}a;!${qoi}b)`,
      {
        kind: 'and',
        parts: [
          { kind: 'exists', path: path(`${qoi}a`) },
          { kind: 'absent', path: path(`${qoi}b`) },
        ],
      },
    ],
    [
      `<${qoi}min>.unitCode=="X"`,
      {
        kind: 'compare',
        path: path(`${qoi}min`, 'unitCode'),
        operator: '==',
        value: { kind: 'string', value: 'X' },
      },
    ],
    [
      `a.${qoi}min.x==1`,
      { kind: 'compare', path: path('a', `${qoi}min.x`), operator: '==', value: number(1) },
    ],
    [
      'a{b.c}==1',
      {
        kind: 'compare',
        path: { names: ['a'], linked: { types: [], path: path('b', 'c') } },
        operator: '==',
        value: number(1),
      },
    ],
    [
      'a{T,U:b{c}}',
      {
        kind: 'exists',
        path: {
          names: ['a'],
          linked: { types: ['T', 'U'], path: { names: ['b'], linked: { types: [], path: path('c') } } },
        },
      },
    ],
    [
      'a{<urn:t:T>:<qoi:min>}',
      { kind: 'exists', path: { names: ['a'], linked: { types: ['urn:t:T'], path: path(`${qoi}min`) } } },
    ],
  ])('%s', (text, tree) => {
    expect(parse(text)).toEqual(tree)
    expect(parse(printQuery(parse(text)))).toEqual(tree)
  })

  it.each([
    ['', /attribute name/],
    ['a==', /expected a value/],
    ['==1', /attribute name/],
    ['a==1;', /attribute name/],
    ['a|', /attribute name/],
    ['(a', /expected \)/],
    ['a)', /unexpected \)/],
    ['a=1', /unexpected =/],
    ['a===1', /expected a value/],
    ['a=="x', /closing quote/],
    ['a=="\\x"', /not a JSON string/],
    ['a>true', /needs a number/],
    ['a>word', /needs a number/],
    ['a>1..2', /needs == or !=/],
    ['a>1,2', /needs == or !=/],
    ['a==1.."x"', /two numbers/],
    ['a==1e999', /too large/],
    ['a==2020-13-01', /not a date/],
    ['a>2020-01-01T00:00:00+01:00', /not a DateTime/],
    ['a>25:00:00Z', /not a time/],
    ['a~=', /expected a pattern/],
    ['a~=(', /missing \)/],
    ['a[', /expected a key/],
    ['a[b', /expected \]/],
    ['a{b', /expected }/],
    ['a..b', /attribute name/],
    ['!a==1', /unexpected =/],
    ['a b', /unexpected b/],
  ])('refuses %s', (text, reason) => {
    expect(() => parse(text)).toThrow(reason)
    expect(() => parse(text)).toThrow(/^q: |^pattern /)
  })

  it.each([
    ['x'.repeat(8193)],
    [Array.from({ length: 129 }, () => 'a').join(';')],
    [`a==${Array.from({ length: 200 }, () => '1').join()}`],
    [`${'('.repeat(40)}a${')'.repeat(40)}`],
    [`${'a{'.repeat(40)}b${'}'.repeat(40)}`],
  ])('refuses too much: %#', (text) => {
    try {
      parse(text)
      expect.unreachable()
    } catch (error) {
      expect(isGatewayError(error, 'ngsi-ld.too-complex')).toBe(true)
    }
  })

  it('prints names for a reader', () => {
    const compact = (name: string): string => name.replace(qoi, 'qoi:')
    expect(printQuery(parse(`${qoi}min>=3;(a|b)`), compact)).toBe('qoi:min>=3;(a|b)')
  })
})

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
    ['color=="red"', false],
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
    ['use==commercial', true],
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
    expect(matchesQuery(parse(text), entity, times)).toBe(expected)
  })

  it('knows no system times unless they are given', () => {
    expect(matchesQuery(parse('createdAt'), entity)).toBe(false)
    expect(matchesQuery(parse('temp.createdAt'), entity)).toBe(false)
  })

  it('orders text by code point', () => {
    const of = (value: string): Entity => ({ id: 'urn:e', type: 'T', a: { type: 'Property', value } })
    expect(matchesQuery(parse('a>"\uffff"'), of('😀'))).toBe(true)
    expect(matchesQuery(parse('a<"\uffff"'), of('😀'))).toBe(false)
    expect(matchesQuery(parse('a<"😁"'), of('😀'))).toBe(true)
    expect(matchesQuery(parse('a>="ab"'), of('abc'))).toBe(true)
    expect(matchesQuery(parse('a>="abc"'), of('ab'))).toBe(false)
  })

  it('refuses terms on linked entities', () => {
    expect(() => compileQuery(parse('partOf{name}=="x"'))).toThrow(/not built/)
  })
})

describe('what a tree says', () => {
  it('names its attributes once', () => {
    expect(attributesOf(parse('a==1;(b.c|a[d]);!e'))).toEqual(['a', 'b', 'e'])
  })

  it.each<[string, unknown]>([
    [
      'a>1',
      {
        attribute: 'a',
        negated: false,
        equality: false,
        intervals: [{ type: 'number', low: 1, lowOpen: true }],
      },
    ],
    [
      'a<="x"',
      { attribute: 'a', negated: false, equality: false, intervals: [{ type: 'string', high: 'x' }] },
    ],
    [
      'a!=true',
      {
        attribute: 'a',
        negated: true,
        equality: true,
        intervals: [{ type: 'boolean', low: true, high: true }],
      },
    ],
    [
      'a==1..2',
      { attribute: 'a', negated: false, equality: true, intervals: [{ type: 'number', low: 1, high: 2 }] },
    ],
    [
      'a==1,urn:x:1',
      {
        attribute: 'a',
        negated: false,
        equality: true,
        intervals: [
          { type: 'number', low: 1, high: 1 },
          { type: 'string', low: 'urn:x:1', high: 'urn:x:1' },
        ],
      },
    ],
    [
      'a>1970-01-01T00:00:01Z',
      {
        attribute: 'a',
        negated: false,
        equality: false,
        intervals: [{ type: 'dateTime', low: 1000, lowOpen: true }],
      },
    ],
    ['a.b>1', undefined],
    ['a[b]>1', undefined],
    ['a', undefined],
    ['a~=x', undefined],
    ['createdAt>1970-01-01T00:00:01Z', undefined],
    ['a>1;b>1', undefined],
  ])('scalar term of %s', (text, term) => {
    expect(scalarTermOf(parse(text))).toEqual(term)
  })
})
