/**
 * Laws of the q language: print and parse are inverse, the rules of comparison hold for random values, and
 * any input causes at worst a client error. Patterns agree with the regular expressions of the platform.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isGatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import {
  printQuery,
  type QueryPath,
  type QueryScalar,
  type QueryTree,
  scalarTermOf,
} from '#ngsi-ld/query/query.ts'
import { compileQuery } from '#ngsi-ld/query/query-match.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { compilePattern } from '#ngsi-ld/values/pattern.ts'

const same = (term: string): string => term

const name = fc.constantFrom(
  'a',
  'temp_1',
  'größe',
  'https://w3id.org/iot/qoi#min',
  'http://x.org/a?b=c',
  'urn:x:a.b',
  'did:x:y',
  'https://x.org/a(b)',
  'https://x.org/a==b',
)
const key = fc.oneof(
  fc.constantFrom('x', '*', 'en', 'a.b', '0'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 }),
)
const plainPath: fc.Arbitrary<QueryPath> = fc.record(
  {
    names: fc.array(name, { minLength: 1, maxLength: 3 }),
    member: fc.array(key, { minLength: 1, maxLength: 2 }),
  },
  { requiredKeys: ['names'] },
)
const path: fc.Arbitrary<QueryPath> = fc.oneof(
  { weight: 4, arbitrary: plainPath },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        plainPath,
        fc.array(fc.constantFrom('T', 'urn:t:T', 'https://x.org/T'), { maxLength: 2 }),
        plainPath,
      )
      .map(([outer, types, inner]) => ({ ...outer, linked: { types, path: inner } })),
  },
)

const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)
const time = (observed: boolean): fc.Arbitrary<QueryScalar> =>
  fc
    .date({
      min: new Date('1900-01-01T00:00:00Z'),
      max: new Date('2200-01-01T00:00:00Z'),
      noInvalidDate: true,
    })
    .map((date) => ({
      kind: observed ? 'dateTime' : 'date',
      value: date.toISOString().slice(0, observed ? undefined : 10),
    }))
const scalars: fc.Arbitrary<QueryScalar>[] = [
  number.map((value) => ({ kind: 'number', value })),
  fc.string({ unit: 'binary', maxLength: 8 }).map((value) => ({ kind: 'string', value })),
  time(true),
  time(false),
  fc.constantFrom('00:00:00Z', '23:59:59.5Z').map((value) => ({ kind: 'time', value })),
]
const comparable = fc.oneof(...scalars)
const scalar: fc.Arbitrary<QueryScalar> = fc.oneof(
  comparable,
  fc.boolean().map((value) => ({ kind: 'boolean', value }) as const),
  fc
    .constantFrom('urn:x:1', 'http://x.org/a?b=c&d', 'word', 'truely', '1a', '-', '2020-01-01x')
    .map((value) => ({ kind: 'name', value }) as const),
)
/** A quoted time compared with a time member is a time; the tree represents it as one. */
const isClear = (tree: QueryTree): boolean => !JSON.stringify(tree).includes('observedAt')

const term: fc.Arbitrary<QueryTree> = fc.oneof(
  path.map((p) => ({ kind: 'exists', path: p }) as const),
  path.map((p) => ({ kind: 'absent', path: p }) as const),
  fc
    .tuple(path, fc.constantFrom('>', '>=', '<', '<=', '==', '!=' as const), comparable)
    .map(([p, operator, value]) => ({ kind: 'compare', path: p, operator, value }) as QueryTree),
  fc
    .tuple(path, fc.constantFrom('==', '!=' as const), scalar)
    .map(([p, operator, value]) => ({ kind: 'compare', path: p, operator, value }) as QueryTree),
  fc
    .tuple(path, fc.constantFrom('==', '!=' as const), fc.array(scalar, { minLength: 2, maxLength: 4 }))
    .map(
      ([p, operator, items]) =>
        ({ kind: 'compare', path: p, operator, value: { kind: 'list', items } }) as QueryTree,
    ),
  fc
    .tuple(
      path,
      fc.constantFrom('==', '!=' as const),
      fc.oneof(...scalars.map((each) => fc.tuple(each, each))),
    )
    .map(
      ([p, operator, [low, high]]) =>
        ({ kind: 'compare', path: p, operator, value: { kind: 'range', low, high } }) as QueryTree,
    ),
  fc
    .tuple(
      path,
      fc.boolean(),
      fc.constantFrom('^a', 'say "x"', 'a|b', '(a;b)|c', '\\\\', 'a\\.b', '[")]', 'é+'),
    )
    .map(([p, negated, pattern]) => ({ kind: 'match', path: p, negated, pattern }) as const),
)
/**
 * Trees as the parser builds them: junctions of at least two parts, none of which is a junction of the same
 * kind.
 */
const tree: fc.Arbitrary<QueryTree> = fc
  .letrec<{ or: QueryTree; and: QueryTree }>((tie) => ({
    or: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      term,
      fc
        .array(fc.oneof(term, tie('and')), { minLength: 2, maxLength: 4 })
        .map((parts) => ({ kind: 'or', parts }) as QueryTree),
    ),
    and: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      term,
      fc
        .array(fc.oneof(term, tie('or')), { minLength: 2, maxLength: 4 })
        .map((parts) => ({ kind: 'and', parts }) as QueryTree),
    ),
  }))
  .or.filter(isClear)
  .map(flatten)

function flatten(node: QueryTree): QueryTree {
  if (node.kind !== 'and' && node.kind !== 'or') return node
  const parts = node.parts.map(flatten).flatMap((part) => (part.kind === node.kind ? part.parts : [part]))
  return { kind: node.kind, parts }
}

describe('printing and parsing', () => {
  it('reproduces every tree', () => {
    fc.assert(
      fc.property(tree, (wanted) => {
        const text = printQuery(wanted)
        fc.pre(text.length <= 8192)
        expect(parseQuery(text, same)).toEqual(wanted)
      }),
      { numRuns: 500 },
    )
  })

  it('returns a tree or a client error for any text', () => {
    const pieces = fc.constantFrom(
      'a',
      'b.c',
      'https://x.org/#y',
      '==',
      '!=',
      '~=',
      '!~=',
      '>',
      '>=',
      ';',
      '|',
      '(',
      ')',
      '"',
      '"x"',
      '1',
      '..',
      ',',
      '[',
      ']',
      '{',
      '}',
      '<',
      '!',
      '\\',
      ' ',
      '2020-01-01T00:00:00Z',
      'urn:x:1',
      '^a+$',
      '\u0000',
      '😀',
    )
    const text = fc.oneof(
      fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join('')),
      fc.string({ unit: 'binary', maxLength: 40 }),
    )
    fc.assert(
      fc.property(text, (input) => {
        try {
          const parsed = parseQuery(input, same)
          expect(parseQuery(printQuery(parsed), same)).toEqual(parsed)
        } catch (error) {
          if (!isGatewayError(error)) throw error
          expect(['ngsi-ld.bad-request-data', 'ngsi-ld.too-complex']).toContain(error.code)
        }
      }),
      { numRuns: 2000 },
    )
  })
})

const value: fc.Arbitrary<Json> = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.constantFrom('', 'a', 'b', 'ab', '2024-01-01T00:00:00Z', '2024-01-01'),
  fc.boolean(),
  fc.constant({ x: 1 }),
)
const few: fc.Arbitrary<QueryScalar> = fc.oneof(
  fc.integer({ min: -3, max: 3 }).map((n) => ({ kind: 'number', value: n + 0 }) as const),
  fc.constantFrom('', 'a', 'b', 'ab').map((text) => ({ kind: 'string', value: text }) as const),
)
const entityWith = (content: Json): Entity => ({
  id: 'urn:e',
  type: 'T',
  a: { type: 'Property', value: content },
})
const holds = (content: Json, operator: string, wanted: QueryScalar | QueryTree['kind']): boolean =>
  compileQuery({ kind: 'compare', path: { names: ['a'] }, operator, value: wanted } as QueryTree)(
    entityWith(content),
  )
const typeOf = (content: Json): string => (typeof content === 'object' ? 'structure' : typeof content)

describe('comparing one value', () => {
  it('follows the order of its type and never matches across types', () => {
    fc.assert(
      fc.property(value, few, (content, wanted) => {
        const sameType = typeOf(content) === typeof wanted.value
        const [x, y] = [content as number, wanted.value as number]
        expect(holds(content, '==', wanted)).toBe(sameType && x === y)
        expect(holds(content, '!=', wanted)).toBe(!(sameType && x === y))
        expect(holds(content, '<', wanted)).toBe(sameType && x < y)
        expect(holds(content, '<=', wanted)).toBe(sameType && x <= y)
        expect(holds(content, '>', wanted)).toBe(sameType && x > y)
        expect(holds(content, '>=', wanted)).toBe(sameType && x >= y)
      }),
      { numRuns: 500 },
    )
  })

  it('of an array matches any item, and != all of them', () => {
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 4 }),
        few,
        fc.constantFrom('==', '<', '<=', '>', '>='),
        (items, wanted, operator) => {
          expect(holds(items, operator, wanted)).toBe(items.some((item) => holds(item, operator, wanted)))
          expect(holds(items, '!=', wanted)).toBe(items.every((item) => holds(item, '!=', wanted)))
        },
      ),
      { numRuns: 300 },
    )
  })

  it('of several instances matches any', () => {
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 4 }),
        few,
        fc.constantFrom('==', '!=', '<', '>='),
        (items, wanted, operator) => {
          const entity: Entity = {
            id: 'urn:e',
            type: 'T',
            a: items.map((item, at) => ({ type: 'Property', value: item, datasetId: `urn:d:${at}` })),
          }
          const term = { kind: 'compare', path: { names: ['a'] }, operator, value: wanted } as QueryTree
          expect(compileQuery(term)(entity)).toBe(items.some((item) => holds(item, operator, wanted)))
        },
      ),
      { numRuns: 300 },
    )
  })

  it('agrees with the intervals used by an index', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -3, max: 3 }),
        term.filter((each) => each.kind === 'compare'),
        (content, each) => {
          const plain = { ...each, path: { names: ['a'] } } as QueryTree
          const normal = scalarTermOf(plain)!
          const inside = normal.intervals.some(
            ({ type, low = -Infinity, high = Infinity, lowOpen, highOpen }) =>
              type === 'number' &&
              content >= (low as number) &&
              content <= (high as number) &&
              !(lowOpen === true && content === low) &&
              !(highOpen === true && content === high),
          )
          expect(compileQuery(plain)(entityWith(content))).toBe(inside !== normal.negated)
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe('patterns', () => {
  const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\d', '\\w', '\\.', 'é', '😀', '^', '$')
  const quantifier = fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{1,}', '{0,2}', '*?', '+?')
  const pattern: fc.Arbitrary<string> = fc.letrec<{ p: string }>((tie) => ({
    p: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.tuple(atom, quantifier).map(([one, times]) => (one === '^' || one === '$' ? one : one + times)),
      fc.array(tie('p'), { maxLength: 3 }).map((parts) => parts.join('')),
      fc.tuple(tie('p'), tie('p')).map(([x, y]) => `${x}|${y}`),
      fc.tuple(tie('p'), quantifier).map(([x, times]) => `(${x})${times}`),
    ),
  })).p
  const text = fc
    .array(fc.constantFrom('a', 'b', '1', '.', 'é', '😀', '\n'), { maxLength: 8 })
    .map((parts) => parts.join(''))

  it("match the same texts as the platform's", () => {
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 1, maxLength: 8 }), (source, texts) => {
        const compiled = compilePattern(source)
        const oracle = new RegExp(source, 'u')
        for (const each of texts) {
          expect(compiled.test(each)).toBe(oracle.test(each))
          if (compiled.test(each)) expect(each.startsWith(compiled.prefix)).toBe(true)
        }
      }),
      { numRuns: 1500 },
    )
  })

  it('are compiled or rejected, for any text', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary', maxLength: 20 }),
          fc
            .array(fc.constantFrom(...'ab()[]{}*+?|\\^$.,-:0123i'), { maxLength: 15 })
            .map((parts) => parts.join('')),
        ),
        text,
        (source, each) => {
          try {
            expect(typeof compilePattern(source).test(each)).toBe('boolean')
          } catch (error) {
            if (!isGatewayError(error)) throw error
            expect(['ngsi-ld.bad-request-data', 'ngsi-ld.too-complex']).toContain(error.code)
          }
        },
      ),
      { numRuns: 2000 },
    )
  })
})
