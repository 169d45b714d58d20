/** pick and omit: names, separators, and braces around members of linked entities. */
import { describe, expect, it } from 'vitest'
import { depthOf, parseProjection } from './projection.ts'

const parse = (text: string) =>
  parseProjection(text, (term) => (term === 'b' ? 'https://b.example/b' : term), 'pick')

describe('a projection', () => {
  it("accepts names in the client's terms, with either separator", () => {
    expect([...parse('id, b|c').names]).toEqual(['id', 'https://b.example/b', 'c'])
    expect([...parse('https://x.org/a,b').names]).toEqual(['https://x.org/a', 'https://b.example/b'])
  })

  it('follows relationships', () => {
    const projection = parse('id,to{name,b{c}|d},e')
    expect([...projection.names]).toEqual(['id', 'to', 'e'])
    expect([...projection.linked.get('to')!.names]).toEqual(['name', 'https://b.example/b', 'd'])
    expect(depthOf(projection)).toBe(2)
    expect(depthOf(parse('a'))).toBe(0)
  })

  it.each(['', 'a,', ',a', 'a,,b', 'a{b', 'a{}', 'a{{b}}', 'a}', 'a{b}c', 'a;b', '{a}'])(
    'refuses %j',
    (text) => {
      expect(() => parse(text)).toThrow(/^pick: /)
    },
  )

  it('rejects too many levels', () => {
    expect(() => parse(`${'a{'.repeat(50)}a${'}'.repeat(50)}`)).toThrow(/too many levels/)
  })
})
