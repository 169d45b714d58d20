/** The state of an uplink with another centre or selection: everything is sent, whatever is pending. */
import { expect, it } from 'vitest'
import {
  adaptState,
  addPending,
  addPendingInFull,
  clearUnsentDeletions,
  endUnsentDeletions,
  newState,
  type UplinkState,
} from './uplink-state.ts'

const goal = { centre: 'http://a/ngsi-ld/v1 ', selected: 'tanks' }
const here = { n: 90, at: 900 }
const state = (spans: UplinkState['spans']): UplinkState => ({
  ...newState({ n: 50, at: 500 }, undefined),
  ...goal,
  spans,
})

it.each([
  ['nothing waits', [], [{ from: 0, to: 901 }]],
  ['all waits', [{ from: 0, to: 901 }], [{ from: 0, to: 901 }]],
  [
    'something waits',
    [
      { from: 100, to: 200, level: 'thinned', began: 50 },
      { from: 300, to: 400 },
      { from: 400, to: 450 },
    ],
    [
      { from: 0, to: 100 },
      { from: 100, to: 200, level: 'thinned', began: 50 },
      { from: 200, to: 300 },
      { from: 300, to: 400 },
      { from: 400, to: 450 },
      { from: 450, to: 901 },
    ],
  ],
] satisfies [string, UplinkState['spans'], UplinkState['spans']][])(
  'sends all of the past for another selection if %s',
  (_, spans, expected) => {
    const next = adaptState(state(spans), { ...goal, selected: 'pumps' }, here)
    expect(next).toMatchObject({ selected: 'pumps', refresh: { since: 0, deletionsAfter: 50, rid: 0 } })
    expect(next.spans).toEqual(expected)
  },
)

it('resumes for the same centre, and starts over for another', () => {
  const known = state([{ from: 1, to: 2 }])
  expect(adaptState(known, goal, here)).toEqual(known)
  const other = adaptState({ ...known, isPaused: true }, { ...goal, centre: 'http://b/ngsi-ld/v1 ' }, here)
  expect(other).toMatchObject({ isPaused: true, position: here, spans: [{ from: 0, to: 901 }] })
})

it('starts an outage after a span whose gaps are being reported, and still sends late commits', () => {
  const telling = { began: 0, to: 600, unnamed: {} }
  const spansAfter = (more: object, from: number, to: number): UplinkState['spans'] => {
    const one: UplinkState = { ...state([]), telling: { ...telling, ...more } }
    addPending(one, from, to)
    return one.spans
  }
  expect(spansAfter({}, 550, 700)).toEqual([{ from: 550, to: 700, level: 'full', began: 600 }])
  expect(spansAfter({}, 650, 700)).toEqual([{ from: 650, to: 700, level: 'full', began: 650 }])
  expect(spansAfter({ again: 0 }, 550, 700)).toEqual([{ from: 550, to: 700, level: 'full', began: 550 }])
})

it.each([
  ['where nothing waits', [], [{ from: 550, to: 580 }]],
  ['without a hole to what waits', [{ from: 100, to: 500 }], [{ from: 100, to: 580 }]],
  ['as far as it does not wait', [{ from: 100, to: 570 }], [{ from: 100, to: 580 }]],
  ['not where it waits', [{ from: 100, to: 600 }], [{ from: 100, to: 600 }]],
  [
    'as one of its own behind what is on its way',
    [{ from: 100, to: 500, read: 200 }],
    [
      { from: 100, to: 500 },
      { from: 500, to: 580 },
    ],
  ],
  [
    'again where a slice of it was read before it was there',
    [{ from: 100, to: 600, read: 560 }],
    [
      { from: 100, to: 600 },
      { from: 550, to: 580 },
    ],
  ],
  [
    'again where it is earlier than what waits',
    [{ from: 560, to: 600 }],
    [
      { from: 560, to: 600 },
      { from: 550, to: 580 },
    ],
  ],
] satisfies [string, UplinkState['spans'], object[]][])(
  'keeps unsent history pending, %s',
  (_, spans, expected) => {
    const one = state(spans.map((span) => ({ ...span })))
    addPendingInFull(one, { from: 550, to: 580 })
    expect(one.spans).toMatchObject(expected)
    expect(one.spans).toHaveLength(expected.length)
  },
)

it('remembers unsent deletions until the live lane has passed those the spans left to it', () => {
  const one = state([])
  addPending(one, 400, 600)
  expect(one).toMatchObject({ deletionsUnsentAfter: 50 })
  one.position = { n: 70, at: 600 }
  endUnsentDeletions(one, 80)
  expect(one).toMatchObject({ deletionsUnsentAfter: 50 })
  one.spans = []
  endUnsentDeletions(one, 80)
  clearUnsentDeletions(one)
  expect(one).toMatchObject({ deletionsUnsentAfter: 50, deletionsUnsentUpTo: 80 })
  // A second outage before that: the earliest deletion counts.
  addPendingInFull(one, { from: 600, to: 700 })
  expect(one).toMatchObject({ deletionsUnsentAfter: 50 })
  one.spans = []
  endUnsentDeletions(one, 90)
  one.position = { n: 90, at: 700 }
  clearUnsentDeletions(one)
  expect(one).not.toHaveProperty('deletionsUnsentAfter')
  expect(one).not.toHaveProperty('deletionsUnsentUpTo')
})
