/** The verdict on a history: what is missing has to be told, in gaps that hold it and count it, and the order is that of times. */
import { describe, expect, it } from 'vitest'
import type { ToldGap } from './gaps.ts'
import { compareHistories, type Excuses } from './verdict.ts'

const at = (second: number, value = second): string =>
  `${new Date(second * 1000).toISOString()} {"value":${value}}`
const [id, key] = ['urn:a', 'level ']
const here = Array.from({ length: 10 }, (_, i) => at(i))
const gap: ToldGap = { id, key, from: 3000, to: 5000, count: 3, reason: 'budget' }
const nothing = { isForgone: () => false, evicted: () => 0 }
const complaintOf = (there: readonly string[], excuses: Partial<Excuses> = {}, ours = here) =>
  compareHistories({ id, key, here: ours, there }, { forgone: nothing, gaps: [], keptGaps: true, ...excuses })
    .complaint
const without = (...seconds: number[]): string[] => here.filter((_, i) => !seconds.includes(i))

describe('a history that is the same', () => {
  it('is none to complain of', () => expect(complaintOf(here)).toBeUndefined())
  it('is that only in the same order', () => {
    const turned = [here[1]!, here[0]!, ...here.slice(2)]
    expect(complaintOf(turned)).toMatch(/not in order/)
    expect(complaintOf(here, {}, turned)).toMatch(/not in order/)
  })
  it('has nothing twice', () => expect(complaintOf([...here, `${at(9)} twice`])).toMatch(/more 1/))
})

describe('a history of which something is missing', () => {
  it('is what a gap tells of', () => {
    expect(complaintOf(without(3, 4, 5), { gaps: [gap] })).toBeUndefined()
    expect(complaintOf(without(4), { gaps: [gap] })).toBeUndefined()
  })
  it.each([
    ['no gap is told', without(3, 4, 5), []],
    ['one of its gaps is not told', without(3, 4, 5, 8), [gap]],
    ['the gap ends too early', without(3, 4, 5), [{ ...gap, to: 4000 }]],
    ['the gap counts too few', without(3, 4, 5), [{ ...gap, count: 2 }]],
    ['the gap counts more than there were', without(3, 4, 5), [{ ...gap, count: 4 }]],
    ['the gap is of another attribute', without(3), [{ ...gap, key: 'flow ' }]],
    ['the gap is of another entity', without(3), [{ ...gap, id: 'urn:b' }]],
    ['the gap is of nobody', without(3), [{ ...gap, id: undefined, key: undefined }]],
  ] satisfies [string, string[], ToldGap[]][])('is wrong where %s', (_, there, gaps) =>
    expect(complaintOf(there, { gaps })).toMatch(/missing|a gap tells of 4/),
  )
})

describe('what went at the gateway and is at the hub no more', () => {
  const evicting = { forgone: { isForgone: () => true, evicted: () => 4 } }
  const size = { ...gap, reason: 'size', count: 4 }
  it('is told', () => expect(complaintOf(here, { ...evicting, gaps: [size] })).toBeUndefined())
  it('is told of those that left no trace', () =>
    expect(complaintOf(here, { ...evicting, gaps: [{ ...size, id: undefined }] })).toBeUndefined())
  it('is told whole', () => {
    expect(complaintOf(here, evicting)).toMatch(/4 missing, and gaps tell of 0/)
    expect(complaintOf(here, { ...evicting, gaps: [gap] })).toMatch(/4 missing, and gaps tell of 3/)
  })
  it('need not be told where it is at the hub', () =>
    expect(complaintOf([...here, at(11), at(12), at(13), at(14)], evicting)).toBeUndefined())
  it('need not be told by a hub that lost what it was told', () =>
    expect(complaintOf(here, { ...evicting, keptGaps: false })).toBeUndefined())
})
