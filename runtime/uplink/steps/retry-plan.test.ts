/** Steps survive serialization, except for earlier values, which were sent by then. */
import { expect, it } from 'vitest'
import { parseStep, serializeStep } from './retry-plan.ts'
import type { Step } from './step-plan.ts'

const entity = { id: 'urn:a', type: 'A' }
const instance = { type: 'Property', value: 1 }
const steps: readonly Step[] = [
  { kind: 'put', entity, attributes: new Map([['v', [instance]]]), before: new Map([['v', [instance]]]) },
  { kind: 'past', entity, attributes: new Map([['v', [instance]]]), via: '1.1 b' },
  { kind: 'drop', entity, name: 'v', dataset: 'urn:d' },
  { kind: 'remove', entity, had: new Set(['v', 'v urn:d']) },
]
it.each(steps)('a step of kind $kind', (step) => {
  const { before: _, ...rest } = step as Step & { kind: 'put' }
  expect(parseStep(serializeStep(step))).toEqual(rest)
})

it('explains a stored deletion without the own attributes of its entity', () => {
  const text = JSON.stringify({ kind: 'remove', entity, had: {} })
  expect(() => parseStep(text)).toThrow(/own attributes of urn:a were not stored/)
})
