/** Both trees against the definition of matching, over many filters and topics. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createFilterTree, plainGrant } from './filter-tree.ts'
import { createTopicTree } from './topic-tree.ts'
import { filterProblem } from './topics.ts'
import { asQos } from './wire.ts'

/** MQTT 3.1.1, section 4.7, literally. */
function matches(filter: string, topic: string): boolean {
  const pattern = filter.split('/')
  const levels = topic.split('/')
  if (topic.startsWith('$') && /^[+#]/.test(filter)) return false
  for (const [index, part] of pattern.entries()) {
    if (part === '#') return levels.length >= index
    if (levels[index] === undefined || (part !== '+' && part !== levels[index])) return false
  }
  return levels.length === pattern.length
}

const level = fc.constantFrom('a', 'b', '', '$x', '__proto__')
const topic = fc.array(level, { minLength: 1, maxLength: 4 }).map((levels) => levels.join('/'))
const filter = fc
  .tuple(fc.array(fc.oneof(level, fc.constant('+')), { maxLength: 4 }), fc.boolean())
  .map(([levels, isOpen]) => (isOpen || levels.length === 0 ? [...levels, '#'] : levels).join('/'))

describe('the tree of filters', () => {
  it('finds each holder of a matching filter once, with its highest QoS', () => {
    const holding = fc.record({
      filter,
      holder: fc.integer({ min: 0, max: 5 }),
      qos: fc.integer({ min: 0, max: 2 }),
    })
    fc.assert(
      fc.property(fc.array(holding), fc.array(fc.nat(20)), topic, (added, removed, name) => {
        const tree = createFilterTree<number>()
        const held = new Map<string, { filter: string; holder: number; qos: number }>()
        for (const one of added) {
          tree.add(one.filter, one.holder, plainGrant(asQos(one.qos)))
          held.set(`${one.holder} ${one.filter}`, one)
        }
        for (const index of removed) {
          const one = added[index]
          if (one === undefined) continue
          tree.remove(one.filter, one.holder)
          held.delete(`${one.holder} ${one.filter}`)
        }
        const expected = new Map<number, number>()
        for (const one of held.values()) {
          if (!matches(one.filter, name)) continue
          expected.set(one.holder, Math.max(one.qos, expected.get(one.holder) ?? 0))
        }
        const found = [...tree.match(name)].map(([holder, { qos }]): [number, number] => [holder, qos])
        expect(new Map(found)).toEqual(expected)
      }),
    )
  })

  it('changes its generation when a match may have changed', () => {
    const tree = createFilterTree<string>()
    const generations = [tree.generation()]
    tree.add('a', 'x', plainGrant(1))
    generations.push(tree.generation())
    tree.remove('a', 'x')
    generations.push(tree.generation())
    expect(new Set(generations).size).toBe(3)
  })
})

describe('the tree of topics', () => {
  it('finds the topics that a filter matches', () => {
    fc.assert(
      fc.property(fc.array(topic), fc.array(fc.nat(10)), filter, (names, removed, asked) => {
        const tree = createTopicTree<string>()
        const kept = new Set(names)
        for (const name of names) tree.set(name, name)
        for (const index of removed) {
          const name = names[index]
          if (name === undefined) continue
          tree.delete(name)
          kept.delete(name)
        }
        expect(tree.matching(asked).sort()).toEqual([...kept].filter((name) => matches(asked, name)).sort())
        for (const name of names) expect(tree.get(name)).toBe(kept.has(name) ? name : undefined)
      }),
    )
  })
})

it('names the rule that a filter breaks', () => {
  for (const wrong of ['a/#/b', 'a#', '#b']) expect(filterProblem(wrong)).toBe('# must be the last level')
  expect(filterProblem('a/b+')).toBe('+ must occupy a whole level')
  expect(filterProblem('+/a/#')).toBeUndefined()
})
