/** What differs is told, but for what others wrote later over there; of what only came from here no clock decides. */
import { expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity.ts'
import { differenceOf } from './difference.ts'
import type { Step } from './plan.ts'

const at = (hour: number): number => Date.UTC(2026, 0, 1, hour)
const label = (value: string, hour: number) => ({
  ...{ type: 'Property', value, modifiedAt: new Date(at(hour)).toISOString() },
})
const here: Step = {
  ...{ kind: 'put', entity: { id: 'urn:a', type: 'A' } },
  attributes: new Map([['label', [{ type: 'Property', value: 'here' }]]]),
}
const there = (value: string, hour: number) =>
  ({ id: 'urn:a', type: 'A', label: label(value, hour) }) as Entity

it.each([
  ['of others, and later', 'there', 5, true, []],
  ['of others, and earlier', 'there', 1, true, [here]],
  ['from here, by a clock that is ahead', 'there', 5, false, [here]],
  ['the same', 'here', 1, true, []],
] as const)('what is %s', (_, value, hour, isOthers, expected) => {
  let newer = 0
  const steps = differenceOf([here], there(value, hour), {
    ...{ times: { created: at(0), modified: at(2), attributes: {} }, placedBefore: undefined },
    ...{ isOthers: () => isOthers, onNewer: () => newer++ },
  })
  expect(steps).toEqual(expected)
  expect(newer).toBe(value === 'there' && expected.length === 0 ? 1 : 0)
})
