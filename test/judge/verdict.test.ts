/**
 * The verdict on a history: missing instances must be reported by gaps that contain and count them, and the
 * order must be that of times.
 */
import { describe, expect, it } from 'vitest'
import type { ReportedGap } from './gaps.ts'
import { compareHistories, type Excuses } from './verdict.ts'

const at = (second: number, value = second): string =>
  `${new Date(second * 1000).toISOString()} {"value":${value}}`
const [id, key] = ['urn:a', 'level ']
const here = Array.from({ length: 10 }, (_, i) => at(i))
const gap: ReportedGap = { id, key, from: 3000, to: 5000, count: 3, reason: 'budget' }
const nothing = { isForgone: () => false, evicted: () => 0 }
const complaintOf = (there: readonly string[], excuses: Partial<Excuses> = {}, ours = here) =>
  compareHistories({ id, key, here: ours, there }, { forgone: nothing, gaps: [], keptGaps: true, ...excuses })
    .complaint
const without = (...seconds: number[]): string[] => here.filter((_, i) => !seconds.includes(i))

describe('an equal history', () => {
  it('causes no complaint', () => expect(complaintOf(here)).toBeUndefined())
  it('is equal only in the same order', () => {
    const turned = [here[1]!, here[0]!, ...here.slice(2)]
    expect(complaintOf(turned)).toMatch(/not in order/)
    expect(complaintOf(here, {}, turned)).toMatch(/not in order/)
  })
  it('contains nothing twice', () => expect(complaintOf([...here, `${at(9)} twice`])).toMatch(/more 1/))
})

describe('an incomplete history', () => {
  it('is excused by a gap', () => {
    expect(complaintOf(without(3, 4, 5), { gaps: [gap] })).toBeUndefined()
    expect(complaintOf(without(4), { gaps: [gap] })).toBeUndefined()
  })
  it.each([
    ['there is no gap', without(3, 4, 5), []],
    ['one of its gaps is not reported', without(3, 4, 5, 8), [gap]],
    ['the gap ends too early', without(3, 4, 5), [{ ...gap, to: 4000 }]],
    ['the gap counts too few', without(3, 4, 5), [{ ...gap, count: 2 }]],
    ['the gap counts more than there were', without(3, 4, 5), [{ ...gap, count: 4 }]],
    ['the gap is of another attribute', without(3), [{ ...gap, key: 'flow ' }]],
    ['the gap is of another entity', without(3), [{ ...gap, id: 'urn:b' }]],
    ['the gap is of nobody', without(3), [{ ...gap, id: undefined, key: undefined }]],
  ] satisfies [string, string[], ReportedGap[]][])('is wrong where %s', (_, there, gaps) =>
    expect(complaintOf(there, { gaps })).toMatch(/missing|a gap reports 4/),
  )
})

describe('history evicted at the gateway and missing at the hub', () => {
  const evicting = { forgone: { isForgone: () => true, evicted: () => 4 } }
  const size = { ...gap, reason: 'size', count: 4 }
  it('is reported', () => expect(complaintOf(here, { ...evicting, gaps: [size] })).toBeUndefined())
  it('is reported for entities that left no record', () =>
    expect(complaintOf(here, { ...evicting, gaps: [{ ...size, id: undefined }] })).toBeUndefined())
  it('is reported completely', () => {
    expect(complaintOf(here, evicting)).toMatch(/4 missing, and gaps report 0/)
    expect(complaintOf(here, { ...evicting, gaps: [gap] })).toMatch(/4 missing, and gaps report 3/)
  })
  it('need not be reported if the hub holds it', () =>
    expect(complaintOf([...here, at(11), at(12), at(13), at(14)], evicting)).toBeUndefined())
  it('need not be reported by a hub that lost its gaps', () =>
    expect(complaintOf(here, { ...evicting, keptGaps: false })).toBeUndefined())
})
