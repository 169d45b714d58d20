/** Values and names that every bridge accepts or rejects. */
import { expect, it } from 'vitest'
import { objectionTo } from './decoding.ts'
import type { Json } from './pipeline.ts'

const objection = (value: Json, device = 'd', field = 'f'): string | undefined =>
  objectionTo({ device, field, value })

it('accepts numbers, booleans, texts and structures', () => {
  for (const value of [0, -0, 1e308, true, '', 'none', 'nano', 'off', [1], { a: 1 }])
    expect(objection(value)).toBeUndefined()
})

it('rejects words for "no value", numbers that are not finite, and invalid Unicode', () => {
  for (const value of [
    'nan',
    'NaN',
    '-inf',
    '+Infinity',
    'NULL',
    'unavailable',
    'Unknown',
    'n/a',
    'undefined',
  ])
    expect(objection(value)).toBe(`"${value}" means no value`)
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, null, '\ud800'])
    expect(objection(value)).toBeDefined()
})

it('rejects names that cannot become ids', () => {
  expect(objection(1, '')).toBe('the device has no name')
  expect(objection(1, 'd', '')).toBe('the field has no name')
  expect(objection(1, 'd', '\udc00')).toBe('the name of the field is not valid Unicode')
  expect(objection(1, 'd'.repeat(257))).toMatch(/longer than 256/)
})
