/**
 * The local part of a condition on linked entities is necessary: every entity that satisfies the whole
 * condition satisfies it. So no candidate is lost before its linked entities are known.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { hasLinked, printQuery, type QueryPath, type QueryTree, withoutLinked } from '#ngsi-ld/query/query.ts'
import { compileQuery, type Follow } from '#ngsi-ld/query/query-match.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'

const same = (term: string): string => term
const small = fc.integer({ min: 0, max: 3 })
const plain: fc.Arbitrary<QueryPath> = fc.constantFrom('v', 'r').map((name) => ({ names: [name] }))
const path: fc.Arbitrary<QueryPath> = fc.oneof(
  plain,
  fc.record({ names: fc.constant(['r']), linked: fc.record({ types: fc.constant([]), path: plain }) }),
)
const term: fc.Arbitrary<QueryTree> = fc.oneof(
  fc.record({ kind: fc.constantFrom('exists' as const, 'absent' as const), path }),
  fc.tuple(path, fc.constantFrom('==' as const, '!=' as const, '>' as const), small).map(
    ([at, operator, value]): QueryTree => ({
      kind: 'compare',
      path: at,
      operator,
      value: { kind: 'number', value },
    }),
  ),
)
const { or: tree } = fc.letrec<{ or: QueryTree; and: QueryTree }>((tie) => {
  const junction = (kind: 'or' | 'and', other: 'or' | 'and'): fc.Arbitrary<QueryTree> =>
    fc.oneof(
      { maxDepth: 3 },
      term,
      fc
        .array(fc.oneof(term, tie(other)), { minLength: 2, maxLength: 3 })
        .map((parts) => ({ kind, parts: parts.flatMap((one) => (one.kind === kind ? one.parts : [one])) })),
    )
  return { or: junction('or', 'and'), and: junction('and', 'or') }
})
const entity = (id: fc.Arbitrary<string>): fc.Arbitrary<Entity> =>
  fc
    .record({ id, v: fc.option(small), r: fc.option(fc.subarray(['urn:1', 'urn:2'], { minLength: 1 })) })
    .map((one) => ({
      id: one.id,
      type: 'T',
      ...(one.v === null ? {} : { v: { type: 'Property', value: one.v } }),
      ...(one.r === null ? {} : { r: { type: 'Relationship', object: one.r } }),
    }))

it('the local part is necessary, has no linked terms, and is in canonical form', () => {
  const others = fc.tuple(entity(fc.constant('urn:1')), entity(fc.constant('urn:2')))
  fc.assert(
    fc.property(tree, entity(fc.constant('urn:0')), others, (whole, one, linked) => {
      const alone = withoutLinked(whole)
      if (!hasLinked(whole)) expect(alone).toEqual(whole)
      if (alone !== undefined) {
        expect(hasLinked(alone)).toBe(false)
        expect(parseQuery(printQuery(alone), same)).toEqual(alone)
      }
      const follow: Follow = (id) => {
        const found = linked.find((other) => other.id === id)
        return found && { entity: () => found, times: () => ({ created: 0, modified: 0, attributes: {} }) }
      }
      if (compileQuery(whole, follow)(one)) expect(alone === undefined || compileQuery(alone)(one)).toBe(true)
    }),
    { numRuns: 1000 },
  )
})
