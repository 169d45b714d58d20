/** The index finds the same subscriptions as a scan, whatever is added or removed in between. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { type EntitySelector, matchesEntity } from '#ngsi-ld/query/entity-selector.ts'
import { compileQuery } from '#ngsi-ld/query/query-match.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { createChangeBudget } from '#ngsi-ld/values/pattern.ts'
import { createSubscriptionIndex } from './subscription-index.ts'

type Selecting = Pick<Subscription, 'entities' | 'watchedAttributes' | 'q'>

const ids = ['urn:x:a:1', 'urn:x:a:12', 'urn:x:b:2', 'urn:y:b:12', 'urn:y'] as const
const types = ['A', 'B', 'C'] as const
const names = ['t', 'h'] as const
const patterns = [
  '^urn:x:a:1$',
  '^urn:x:',
  '12$',
  ':2$',
  'x:.',
  '^urn:y(:b)?',
  '(?i)^URN:Y$',
  '.*',
  '^urn:x:a:12?$',
]

const queries = [
  't==1',
  't=="a"',
  't==1,"a"',
  't==urn:x',
  'h==1',
  't==1|t==2',
  't>0;t==2',
  't!=1',
  't==true',
  't.h==1',
  't=="\ud800"',
]
const values = [1, 2, 'a', 'urn:x', true, [1, 'a'], ['b', 2], { '@value': 1 }, -0, '\ud800', { a: 1 }]

const selector: fc.Arbitrary<EntitySelector> = fc.oneof(
  fc.record({
    ids: fc.subarray([...ids], { minLength: 1 }),
    types: fc.record({ kind: fc.constant('type' as const), name: fc.constantFrom(...types) }),
  }),
  fc.record({
    idPattern: fc.constantFrom(...patterns),
    types: fc.oneof(
      fc.record({ kind: fc.constant('type' as const), name: fc.constantFrom(...types) }),
      fc.constant({ kind: 'any' as const }),
    ),
  }),
  fc.record({ types: fc.record({ kind: fc.constant('type' as const), name: fc.constantFrom(...types) }) }),
)
const subscription: fc.Arbitrary<Selecting> = fc.record(
  {
    entities: fc.array(selector, { minLength: 1, maxLength: 2 }),
    watchedAttributes: fc.subarray([...names], { minLength: 1 }),
    q: fc.constantFrom(...queries).map((text) => parseQuery(text, (term) => term)),
  },
  { requiredKeys: [] },
)
const lookup = fc.record({
  value: fc.constantFrom<Json>(...values),
  id: fc.constantFrom(...ids),
  types: fc.subarray([...types], { minLength: 1 }),
  names: fc.subarray([...names]),
})
const step = fc.oneof(
  fc.record({ add: subscription }),
  fc.record({ remove: fc.nat(9) }),
  fc.record({ ask: lookup }),
)

it('finds the same as a scan of all subscriptions', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const index = createSubscriptionIndex()
      const all: { subscription: Selecting }[] = []
      for (const one of steps) {
        if ('add' in one) {
          const holder = { subscription: one.add }
          all.push(holder)
          index.add(holder)
        } else if ('remove' in one) {
          for (const holder of all.splice(one.remove, 1)) index.remove(holder)
        } else {
          const { id, types: of, names: changed } = one.ask
          const expected = all.filter(
            ({ subscription: { entities, watchedAttributes } }) =>
              (entities === undefined || entities.some((each) => matchesEntity(each, id, of))) &&
              (watchedAttributes === undefined || changed.some((name) => watchedAttributes.includes(name))),
          )
          const entity = { id, type: of, t: { type: 'Property', value: one.ask.value } } as Entity
          const found = index.find(id, of, changed)
          const candidates = [...found.plain, ...index.valued(found, entity, changed)]
          const asked = ({ subscription: { q } }: { subscription: Selecting }): boolean =>
            q === undefined || compileQuery(q)(entity)
          expect(new Set(candidates.filter(asked))).toEqual(new Set(expected.filter(asked)))
          expect(new Set(candidates).size).toBe(candidates.length)
        }
      }
    }),
    { numRuns: 500 },
  )
})

it('evaluates one of ten thousand whose patterns begin or end with different letters', () => {
  const index = createSubscriptionIndex()
  for (let i = 0; i < 10_000; i++) {
    const idPattern = i % 2 === 0 ? `^urn:x:${i}$` : `:${i}-$`
    index.add({ subscription: { entities: [{ idPattern, types: { kind: 'type', name: 'A' } }] } })
  }
  expect(index.find('urn:x:4242', ['A'], ['t']).plain).toHaveLength(1)
  expect(index.find('urn:x:4243-', ['A'], ['t']).plain).toHaveLength(1)
  // Shorter prefixes of the same id are candidates too, a few at most.
  expect(index.evaluated()).toBeLessThanOrEqual(10)
})

it('shares results between entities of the same types unless a subscription selects by id', () => {
  const index = createSubscriptionIndex()
  const type = { kind: 'type', name: 'A' } as const
  index.add({ subscription: { entities: [{ types: type }] } })
  for (let i = 0; i < 100; i++) index.find(`urn:x:${i}`, ['A'], ['t'])
  expect(index.evaluated()).toBe(1)
  const byId = { subscription: { entities: [{ ids: ['urn:x:1'], types: type }] } }
  index.add(byId)
  const found = (id: string): number => index.find(id, ['A'], ['t']).plain.length
  expect([found('urn:x:1'), found('urn:x:2')]).toEqual([2, 1])
  index.remove(byId)
  expect([found('urn:x:1'), found('urn:x:2')]).toEqual([1, 1])
})

it('evaluates one of ten thousand whose q requires different values', () => {
  const index = createSubscriptionIndex()
  for (let i = 0; i < 10_000; i++) {
    const q = parseQuery(`zone==${i};t>3`, (term) => term)
    index.add({ subscription: { entities: [{ types: { kind: 'type', name: 'A' } }], q } })
  }
  const entity = { id: 'urn:x:1', type: 'A', zone: { type: 'Property', value: 77 } } as Entity
  const found = index.find('urn:x:1', ['A'], ['t'])
  expect([found.plain.length, index.valued(found, entity, ['t']).length]).toEqual([0, 1])
  expect(index.evaluated()).toBe(1)
})

it('compares an id with no more patterns than the budget of a change allows', () => {
  const budget = createChangeBudget()
  const index = createSubscriptionIndex(budget)
  const type = { kind: 'type', name: 'A' } as const
  for (let i = 0; i < 5000; i++)
    index.add({ subscription: { entities: [{ idPattern: `(x|xx)+[a-z]{9}${i}`, types: type }] } })
  index.add({ subscription: { entities: [{ idPattern: '^urn:', types: type }] } })
  expect(index.find(`urn:${'x'.repeat(200)}`, ['A'], ['t']).plain).toHaveLength(1)
  expect(budget.refused()).toBeGreaterThan(4000)
})
