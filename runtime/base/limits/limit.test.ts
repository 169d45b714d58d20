/** SELVEDGE_LIMITS overrides the values of limits; unknown names and bad numbers are rejected. */
import { expect, it } from 'vitest'
import { limit, underTrial } from './limit.ts'

const table = {
  waitMs: limit(1000, 'ms'),
  itemsMax: limit(5, 'items'),
}

it('leaves limits unchanged without SELVEDGE_LIMITS', () => {
  expect(underTrial(table, '')).toBe(table)
})

it('overrides the limits that SELVEDGE_LIMITS names', () => {
  expect(underTrial(table, 'waitMs=20, itemsMax=2')).toEqual({
    waitMs: { ...table.waitMs, value: 20 },
    itemsMax: { ...table.itemsMax, value: 2 },
  })
  expect(table.waitMs.value).toBe(1000)
})

it.each(['waitMs', 'waitMs=', 'waitMs=-1', 'waitMs=a', 'other=1', 'toString=1', 'waitMs=1,,'])(
  'rejects %j',
  (text) => {
    expect(() => underTrial(table, text)).toThrow(
      /SELVEDGE_LIMITS expects name=value with the name of a limit, got ".*"/,
    )
  },
)
