/**
 * A model of the lanes: rows with commit times that do not ascend, as in batches, outages, failures of the
 * live lane and slices of the backfill lane, in any order. One of the lanes sends every commit by the time
 * all spans are sent.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { addPending, addPendingInFull, newState, type UplinkState } from './uplink-state.ts'

interface Row {
  readonly n: number
  readonly at: number
  isSent: boolean
}

/** The time of a row is at most this long before its commit. */
const backMost = 40

function createModel() {
  const rows: Row[] = []
  const state: UplinkState = newState({ n: 0, at: 0 }, undefined)
  let now = 1000
  const endOf = (): UplinkState['position'] => ({ n: rows.length, at: Math.max(state.position.at, now) })
  const unread = (count: number): Row[] => rows.filter(({ n }) => n > state.position.n).slice(0, count)

  function fill(sliceMs: number): void {
    const [span] = state.spans
    if (span === undefined) {
      delete state.telling
      return
    }
    const to = Math.min(span.to, span.from + sliceMs)
    span.read = to
    for (const row of rows) if (row.at >= span.from && row.at < to) row.isSent = true
    span.from = to
    if (span.from < span.to) return
    state.spans.shift()
    state.telling = { began: span.began ?? 0, to: span.to, unnamed: {} }
  }

  return {
    rows,
    state,
    commit(afterMs: number, backMs: number) {
      now += afterMs
      rows.push({ n: rows.length + 1, at: now - backMs, isSent: false })
    },
    /** Past values of these rows are not accepted while the backfill lane has trouble. */
    live(count: number, isPastTaken: boolean) {
      const some = unread(count)
      const last = some.at(-1)
      if (last === undefined) return
      const times = some.map(({ at }) => at)
      if (isPastTaken) for (const row of some) row.isSent = true
      else addPendingInFull(state, { from: Math.min(...times), to: Math.max(...times) + 1 })
      state.position = { n: last.n, at: last.at }
    },
    cut() {
      const here = endOf()
      const times = unread(rows.length).map(({ at }) => at)
      addPending(state, Math.min(state.position.at, ...times), here.at + 1)
      state.position = here
    },
    fill,
    fillAll() {
      while (state.spans.length > 0) fill(1_000_000)
    },
  }
}

type Act = (model: ReturnType<typeof createModel>) => void
const ms = fc.integer({ min: 0, max: backMost })
const acts: fc.Arbitrary<Act> = fc.oneof(
  fc.tuple(ms, ms).map(
    ([after, back]): Act =>
      ({ commit }) =>
        commit(after, back),
  ),
  fc.tuple(fc.integer({ min: 1, max: 4 }), fc.boolean()).map(
    ([count, isTaken]): Act =>
      ({ live }) =>
        live(count, isTaken),
  ),
  fc.constant<Act>(({ cut }) => cut()),
  fc.integer({ min: 1, max: 60 }).map(
    (slice): Act =>
      ({ fill }) =>
        fill(slice),
  ),
)

it('sends every row on one of the lanes, whatever times rows have', () => {
  fc.assert(
    fc.property(fc.array(acts, { maxLength: 60 }), (all) => {
      const model = createModel()
      for (const act of all) act(model)
      model.cut()
      model.fillAll()
      expect(model.rows.filter(({ isSent }) => !isSent)).toEqual([])
    }),
    { numRuns: 3000 },
  )
})
