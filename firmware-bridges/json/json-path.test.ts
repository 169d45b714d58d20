/** Paths identify one position in any JSON, and find own members only. */
import { expect, it } from 'vitest'
import { firstMember, lastName, parsePath, valueAt } from './json-path.ts'

const payload = { a: { b: [{ c: 1 }, [2, 3]], 'x.y': { '"': 4 } }, length: 5 }

const at = (text: string, item: unknown = payload): unknown => {
  const path = parsePath(text)
  return path === undefined ? 'no path' : valueAt(path, item, payload)
}

it('follows names, indexes and quoted names', () => {
  expect(at('a.b[0].c')).toBe(1)
  expect(at('a.b[1][1]')).toBe(3)
  expect(at('a["x.y"]["\\""]')).toBe(4)
  expect(at('["a"].b[1]')).toEqual([2, 3])
  expect(at('[0].c', [{ c: 6 }])).toBe(6)
})

it('starts at the payload after $', () => {
  expect(at('$.length', {})).toBe(5)
  expect(at('$["length"]', {})).toBe(5)
  expect(at('$', {})).toBe(payload)
  expect(at('$price', { $price: 7 })).toBe(7)
})

it('finds nothing at a missing position', () => {
  for (const text of ['a.b[2].c', 'a.c.d', 'toString', '__proto__', 'a.constructor', 'length.x', 'a.b.c'])
    expect([text, at(text)]).toEqual([text, undefined])
  for (const item of [null, 7, 'text', true]) expect(at('a.b', item)).toBeUndefined()
})

it('rejects invalid paths', () => {
  for (const text of [
    '',
    '.',
    '.a',
    'a.',
    'a..b',
    'a[',
    'a[x]',
    'a]',
    'a[0]b',
    'a["x]',
    '$.',
    'a'.repeat(257),
  ])
    expect([text, parsePath(text)]).toEqual([text, undefined])
})

it('returns its first member and its last name', () => {
  expect(firstMember(parsePath('a.b')!)).toBe('a')
  expect(firstMember(parsePath('$.a')!)).toBeUndefined()
  expect(lastName(parsePath('a.b[0]')!)).toBe('b')
  expect(lastName(parsePath('[0]')!)).toBeUndefined()
})
