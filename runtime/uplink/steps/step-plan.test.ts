/**
 * Layers of steps: applying the layers has the same effect on each entity as applying the steps, and steps
 * that can share a request do.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { layersOf, type Step } from './step-plan.ts'

const head = (id: string) => ({ id, type: 'T' })
const put = (id: string, name: string, value: number, observedAt?: string): Step => ({
  kind: 'put',
  entity: head(id),
  attributes: new Map([
    [name, [{ type: 'Property', value, ...(observedAt === undefined ? {} : { observedAt }) }]],
  ]),
})
const drop = (id: string, name: string): Step => ({ kind: 'drop', entity: head(id), name, dataset: '' })
const remove = (id: string): Step => ({ kind: 'remove', entity: head(id), had: new Set() })

const steps = fc
  .array(
    fc
      .tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('x', 'y'), fc.nat(99), fc.nat(9))
      .map(([id, name, value, kind]) => ({ id, name, value, kind })),
    { maxLength: 40 },
  )
  .map((all) =>
    // Observation times ascend, as devices send them.
    all.map(({ id, name, value, kind }, i) => {
      if (kind === 0) return remove(id)
      if (kind === 1) return drop(id, name)
      return put(id, name, value, kind < 5 ? undefined : new Date(i * 1000).toISOString())
    }),
  )

/** The entities after some steps, and the observations sent for each, in order. */
function outcome(all: readonly Step[]): unknown {
  const entities = new Map<string, Map<string, AttributeInstance>>()
  const sent = new Map<string, AttributeInstance[]>()
  for (const step of all) {
    const { id } = step.entity
    if (step.kind === 'remove') entities.delete(id)
    else if (step.kind === 'drop') entities.get(id)?.delete(step.name)
    else if (step.kind === 'erase') sent.delete(`${id} ${step.name}`)
    else {
      const entity = entities.get(id) ?? new Map<string, AttributeInstance>()
      entities.set(id, entity)
      for (const [name, instances] of step.attributes) {
        entity.set(name, instances.at(-1)!)
        const observed = instances.filter(({ observedAt }) => observedAt !== undefined)
        if (observed.length > 0)
          sent.set(`${id} ${name}`, [...(sent.get(`${id} ${name}`) ?? []), ...observed])
      }
    }
  }
  const now = [...entities].map(([id, entity]) => [id, Object.fromEntries(entity)])
  return { now: Object.fromEntries(now), sent: Object.fromEntries(sent) }
}

describe('layers', () => {
  it('have the same effect as the steps in order', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const layers = layersOf(all)
        expect(outcome(layers.flatMap((layer) => layer.steps))).toEqual(outcome(all))
        for (const layer of layers) expect(layer.steps.every(({ kind }) => kind === layer.kind)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it('send many values of one instance in two requests', () => {
    const all = [1, 2, 3, 4].map((value) => put('a', 'x', value, new Date(value * 1000).toISOString()))
    expect(layersOf(all).map(({ kind }) => kind)).toEqual(['past', 'put'])
  })

  it('send a few values of many entities in rounds, and many values of one entity separately', () => {
    const at = (value: number): string => new Date(value * 1000).toISOString()
    const many = ['b', 'c', 'd', 'e', 'f'].flatMap((id) =>
      [1, 2, 3].map((value) => put(id, 'x', value, at(value))),
    )
    const one = Array.from({ length: 20 }, (_, value) => put('a', 'x', value, at(value)))
    const layers = layersOf([...one, ...many])
    expect(layers.map(({ kind, steps: all }) => [kind, all.length])).toEqual([
      ['past', 1],
      ['put', 5],
      ['put', 5],
      ['put', 6],
    ])
  })

  it('group steps of different entities', () => {
    const all = [put('a', 'x', 1), put('b', 'x', 1), put('a', 'y', 1), put('a', 'x', 2), put('b', 'x', 2)]
    expect(layersOf(all).map((layer) => layer.steps.length)).toEqual([2, 2])
  })

  it('separate values that came through different brokers', () => {
    const through = (id: string, via?: string): Step => ({ ...put(id, 'x', 1), via })
    const layers = layersOf([through('a', '1.1 b'), through('b'), through('c', '1.1 b')])
    expect(layers.map(({ via, steps }) => [via, steps.length])).toEqual([
      ['1.1 b', 2],
      [undefined, 1],
    ])
  })

  it('use the latest time of repeated deletions, in any order', () => {
    const went = (at: number): Step => ({ ...drop('a', 'x'), at }) as Step
    expect(layersOf([went(2), went(1)])).toMatchObject([{ steps: [went(2)] }])
    expect(layersOf([went(1), went(2)])).toMatchObject([{ steps: [went(2)] }])
  })
})

it('deletes the attributes an entity had in each of its lives', () => {
  const remove = (had: string): Step => ({
    kind: 'remove',
    entity: { id: 'urn:a', type: 'A' },
    had: new Set([had]),
    at: 1,
  })
  expect(layersOf([remove('label'), remove('level')]).flatMap(({ steps }) => steps)).toEqual([
    { ...remove('label'), had: new Set(['label', 'level']) },
  ])
})
