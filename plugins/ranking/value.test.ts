/**
 * How attributes are found under any spelling of their name.
 */
import { expect, it } from 'vitest'
import { createAttributeFinder } from './value.ts'

it('expands each name once, however many entities lack it', () => {
  const expanded: string[] = []
  const finder = createAttributeFinder((name) => {
    expanded.push(name)
    return name.replace('short:', 'https://example.org/')
  })
  for (let i = 0; i < 100; i++) {
    const entity = { id: `urn:x:${i}`, type: 'X', 'short:level': i }
    expect(finder.keyOf(entity, 'https://example.org/level')).toBe('short:level')
    expect(finder.keyOf(entity, 'missing')).toBeUndefined()
  }
  expect(expanded.toSorted()).toEqual(['https://example.org/level', 'missing', 'short:level'])
})
