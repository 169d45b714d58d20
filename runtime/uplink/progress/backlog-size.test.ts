/**
 * However often the budget is applied to a growing backlog, the number of spans stays small, also if spans
 * overlap.
 */
import { afterEach, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createBacklogMeasure } from './backlog-size.ts'
import { addPendingInFull, newState } from './uplink-state.ts'

afterEach(restoreLimits)

it.each([
  ['none of which is on its way', false],
  ['the first of which is on its way', true],
])('keeps few spans %s', (_, isFilling) => {
  setLimit('uplinkBudgetMs', 1)
  const state = newState({ n: 1, at: 0 }, undefined)
  const begin = 1_000_000
  let now = begin + 100
  const volume = () => ({
    s: 1,
    from: begin,
    to: now,
    isNumeric: true,
    observedMs: now - begin,
    observations: (now - begin) / 100,
    bytes: (now - begin) / 10,
  })
  const measure = createBacklogMeasure(
    {
      state,
      clock: { now: () => now, monotonic: () => now },
      backlog: { volumes: () => [volume()], roomBytes: () => 1e12 },
      selected: () => () => true,
    },
    { budgetObservations: 3000, thinSeconds: 60, windows: [], isPaused: false },
  )
  state.spans.push({ from: begin + 20, to: begin + 50, ...(isFilling ? { read: begin + 50 } : {}) })
  for (let i = 0; i < 300; i++) {
    // Each begins a little before the last one ends, as batches with earlier times do.
    addPendingInFull(state, { from: now - 100, to: now })
    now += 30_000
    measure.enforceBudget({ isFilling })
    expect(state.spans.length).toBeLessThan(100)
    expect(state.spans.at(-1)!.to).toBe(now - 30_000)
  }
  // The budget ignores the span being sent, but not later ones.
  expect(state.spans.some(({ level }) => level === 'thinned' || level === 'numberless')).toBe(true)
  if (isFilling) expect(state.spans[0]).toEqual({ from: begin + 20, to: begin + 50, read: begin + 50 })
})
