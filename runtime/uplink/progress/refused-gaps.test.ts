/** Gaps of dropped refusals: one gap per loss, which keeps its id while it grows. */
import { expect, it } from 'vitest'
import { createScopePrefix } from '#uplink/steps/scope-prefix.ts'
import { addRefusedGaps, refusedGapSteps } from './refused-gaps.ts'
import { newState } from './uplink-state.ts'

const rule = { uplink: 'up', alias: 'site', scopePrefix: createScopePrefix(undefined) }
const refused = (q: number, second: number) => ({
  q,
  at: 1000,
  entity: { id: 'urn:T:1', type: 'T' },
  attributes: {
    level: [{ type: 'Property', value: q, observedAt: `2026-01-01T00:00:0${second}Z` } as const],
  },
})
const sent = (state: ReturnType<typeof newState>) => {
  const gaps = refusedGapSteps(state, rule)
  return { ids: gaps.steps.map(({ entity }) => entity.id), done: gaps.onAccepted }
}

it('are two if the same attribute is lost at the same time again', () => {
  const state = newState({ n: 0, at: 0 }, undefined)
  const ids = [1, 2].flatMap((q) => {
    addRefusedGaps(state, [refused(q, 5)])
    const gaps = sent(state)
    gaps.done()
    return gaps.ids
  })
  expect(new Set(ids).size).toBe(2)
})

it('are one if it grew while it was sent, also backwards in time and after a crash', () => {
  const state = newState({ n: 0, at: 0 }, undefined)
  addRefusedGaps(state, [refused(1, 5)])
  const first = sent(state)
  addRefusedGaps(state, [refused(2, 3)])
  first.done()
  expect(sent(state).ids).toEqual(first.ids)
  expect(sent(structuredClone(state)).ids).toEqual(first.ids)
  expect(Object.values(state.forgone)).toMatchObject([{ count: 2 }])
})
