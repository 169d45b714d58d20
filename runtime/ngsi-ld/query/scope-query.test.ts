/**
 * scopeQ: text and tree are inverse, and a tree matches the same scopes as an equivalent regular expression.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matchesScope, parseScopeQuery, printScopeQuery, type ScopeQuery } from './scope-query.ts'

const level = fc.constantFrom('a', 'b', 'ä_1', '+')
const term: fc.Arbitrary<ScopeQuery> = fc
  .record({
    kind: fc.constant('scope' as const),
    levels: fc.array(level, { maxLength: 3 }),
    below: fc.boolean(),
  })
  .filter(({ levels, below }) => below || levels.length > 0)
const { tree } = fc.letrec<{ tree: ScopeQuery }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    term,
    fc
      .tuple(fc.constantFrom('and', 'or' as const), fc.array(tie('tree'), { minLength: 2, maxLength: 3 }))
      .map(([kind, parts]) => ({ kind, parts }) as ScopeQuery),
  ),
}))
const scope = fc
  .array(fc.constantFrom('a', 'b', 'ä_1', 'ab'), { minLength: 1, maxLength: 4 })
  .map((levels) => `/${levels.join('/')}`)

describe('scopeQ', () => {
  it('is reproduced by its text', () => {
    fc.assert(
      fc.property(tree, (query) => {
        expect(parseScopeQuery(printScopeQuery(query))).toEqual(query)
      }),
    )
  })

  it('matches level by level', () => {
    fc.assert(
      fc.property(term, fc.array(scope, { maxLength: 3 }), (query, scopes) => {
        if (query.kind !== 'scope') return
        const levels = query.levels.map((one) => `/${one === '+' ? '[^/]+' : one}`).join('')
        const pattern = new RegExp(`^${levels}${query.below ? '(/.*)?' : ''}$`)
        expect(matchesScope(query, scopes)).toBe(scopes.some((one) => pattern.test(one)))
        expect(matchesScope(query, undefined)).toBe(false)
      }),
    )
  })

  it('binds and tighter than or', () => {
    const query = parseScopeQuery('/a;/b,/c')
    expect(query).toMatchObject({ kind: 'or', parts: [{ kind: 'and' }, { levels: ['c'] }] })
    expect(matchesScope(query, ['/a', '/b'])).toBe(true)
    expect(matchesScope(query, '/a')).toBe(false)
  })
})
