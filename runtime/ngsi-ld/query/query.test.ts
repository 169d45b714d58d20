/** The q language as text: parsing, rejections, printing, and derived properties. */
import { describe, expect, it } from 'vitest'
import { isGatewayError } from '#base/register/errors.ts'
import { attributesOf, printQuery, type QueryTree, scalarTermOf } from './query.ts'
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
    ['http://s.org/a.observedAt', { kind: 'exists', path: path('http://s.org/a', 'observedAt') }],
    ['http://s.org/a.http://s.org/b', { kind: 'exists', path: path('http://s.org/a', 'http://s.org/b') }],
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
    ['a~=\\"x\\\\"', { kind: 'match', path: path('a'), negated: false, pattern: '"x\\\\"' }],
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
    ['a>true', /requires a number/],
    ['a>word', /requires a number/],
    ['a>1..2', /requires == or !=/],
    ['a>1,2', /requires == or !=/],
    ['a==1.."x"', /two numbers/],
    ['a==..5', /expected a value/],
    ['a==1,..5', /expected a value/],
    ["a=='x'", /double quotes/],
    ['a==1e999', /too large/],
    ['a==2020-13-01', /not a date/],
    ['a>2020-01-01T00:00:00+01:00', /not a DateTime/],
    ['a>25:00:00Z', /not a time/],
    ['a~=', /expected a pattern/],
    ['a~=(', /missing closing \)/],
    ['a[', /expected a key/],
    ['a[b', /expected \]/],
    ['a{b', /expected }/],
    ['a..b', /attribute name/],
    ['!a==1', /unexpected =/],
    ['a b', /unexpected b/],
  ])('rejects %s', (text, reason) => {
    expect(() => parse(text)).toThrow(reason)
    expect(() => parse(text)).toThrow(/^q: |^pattern: /)
  })

  it.each([
    ['x'.repeat(8193)],
    [Array.from({ length: 129 }, () => 'a').join(';')],
    [`a==${Array.from({ length: 200 }, () => '1').join()}`],
    [`${'('.repeat(40)}a${')'.repeat(40)}`],
    [`${'a{'.repeat(40)}b${'}'.repeat(40)}`],
  ])('rejects queries beyond the limits: %#', (text) => {
    try {
      parse(text)
      expect.unreachable()
    } catch (error) {
      expect(isGatewayError(error, 'ngsi-ld.too-complex')).toBe(true)
    }
  })

  it('prints names for a client', () => {
    const compact = (name: string): string => name.replace(qoi, 'qoi:')
    expect(printQuery(parse(`${qoi}min>=3;(a|b)`), compact)).toBe('qoi:min>=3;(a|b)')
  })
})

describe('properties of a tree', () => {
  it('lists its attributes once', () => {
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
