/**
 * Differences are sent, except later writes of other clients; clocks do not matter for what only came from
 * here.
 */
import { expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { createScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { selectionOf } from '#uplink/steps/uplink-selection.ts'
import { differenceOf, surplusOf } from './entity-difference.ts'

const everything = { id: 'urn:up', notification: { endpoint: { uri: 'http://a' } } } as Subscription
const at = (hour: number): number => Date.UTC(2026, 0, 1, hour)
const label = (value: string, hour: number) => ({
  type: 'Property',
  value,
  modifiedAt: new Date(at(hour)).toISOString(),
})
const here: Step = {
  kind: 'put',
  entity: { id: 'urn:a', type: 'A' },
  attributes: new Map([['label', [{ type: 'Property', value: 'here' }]]]),
}
const there = (value: string, hour: number) =>
  ({ id: 'urn:a', type: 'A', label: label(value, hour) }) as Entity

it('deletes at the centre what was deleted here, and what only came from here and no longer exists', () => {
  const entity = { id: 'urn:a', type: 'A', label: { type: 'Property', value: 'here' } } as Entity
  const view = {
    id: entity.id,
    text: () => JSON.stringify(entity),
    entity: () => entity,
    version: () => 1,
    times: () => ({ created: at(0), modified: at(2), attributes: {} }),
  }
  const remote = {
    ...there('here', 1),
    createdAt: '2026-01-01T00:00:00Z',
    modifiedAt: '2026-01-01T00:00:00Z',
  }
  const lookups = {
    selection: selectionOf(everything),
    isFromCentre: () => false,
    scopePrefix: createScopePrefix(undefined),
  }
  const gone = { key: 'mark', name: 'mark', dataset: '', at: at(3), via: undefined }
  let looks = 0
  const following = {
    deletionsUnder() {
      looks++
      return [gone]
    },
  }
  const ports = { following, lookups, isForeign: () => true, onNewer: () => undefined }
  expect(surplusOf(view, remote as unknown as Entity, ports)).toEqual([])
  expect(looks).toBe(0)
  const mark = { type: 'Property', value: 1, modifiedAt: new Date(at(1)).toISOString() }
  expect(surplusOf(view, { ...remote, mark } as unknown as Entity, ports)).toEqual([
    { kind: 'drop', entity: { id: 'urn:a', type: 'A' }, name: 'mark', dataset: '' },
  ])
  const unknown = { ...remote, other: mark } as unknown as Entity
  expect(surplusOf(view, unknown, ports)).toEqual([])
  expect(surplusOf(view, unknown, { ...ports, isForeign: () => false })).toMatchObject([{ name: 'other' }])
})

it.each([
  ['of others, and later', 'there', 5, true, []],
  ['of others, and earlier', 'there', 1, true, [here]],
  ['from here, by a clock that is ahead', 'there', 5, false, [here]],
  ['the same', 'here', 1, true, []],
] as const)('what is %s', (_, value, hour, isForeign, expected) => {
  let newer = 0
  const steps = differenceOf([here], there(value, hour), {
    times: { created: at(0), modified: at(2), attributes: {} },
    placedBefore: undefined,
    isForeign: () => isForeign,
    isHeld: () => false,
    onNewer: () => newer++,
  })
  expect(steps).toEqual(expected)
  expect(newer).toBe(value === 'there' && expected.length === 0 ? 1 : 0)
})
