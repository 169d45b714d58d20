/** Ceilings under trial: what SELVEDGE_LIMITS names has another value, and what it cannot mean is refused. */
import { expect, it } from 'vitest'
import { limit, underTrial } from './limit.ts'

const table = {
  waitMs: limit(1000, 'ms', 'a wait', 'the next'),
  itemsMax: limit(5, 'items', 'a queue', '503'),
}

it('stay what they are without SELVEDGE_LIMITS', () => {
  expect(underTrial(table, '')).toBe(table)
})

it('have the values that it names', () => {
  expect(underTrial(table, 'waitMs=20, itemsMax=2')).toEqual({
    waitMs: { ...table.waitMs, value: 20 },
    itemsMax: { ...table.itemsMax, value: 2 },
  })
  expect(table.waitMs.value).toBe(1000)
})

it.each(['waitMs', 'waitMs=', 'waitMs=-1', 'waitMs=a', 'other=1', 'toString=1', 'waitMs=1,,'])(
  'refuse %j',
  (text) => {
    expect(() => underTrial(table, text)).toThrow(/SELVEDGE_LIMITS: ".*" is not name=value of a limit/)
  },
)
