/** The scoring rules of NAB, on a small example. */
import { describe, expect, it } from 'vitest'
import { bestThreshold, type NabTruth, nabProfiles, scaledScore, tallyDetections } from './nab-scoring.ts'

/** A hundred rows: probation until row 15, windows of ten rows. */
const truth: NabTruth = {
  rows: 100,
  windows: [
    [30, 39],
    [60, 69],
  ],
}
const { standard, lowFalseNegative, lowFalsePositive } = nabProfiles
const sigmoid = (y: number): number => 2 / (1 + Math.exp(5 * y)) - 1

describe('the scoring rules of NAB', () => {
  it('give 0 for no detection and 100 for the earliest ones, under each profile', () => {
    for (const profile of Object.values(nabProfiles)) {
      expect(scaledScore(tallyDetections(truth, [], profile), profile)).toBe(0)
      expect(scaledScore(tallyDetections(truth, [30, 60], profile), profile)).toBeCloseTo(100, 10)
    }
  })

  it('weight the earliest detection of a window by its position, and ignore further ones', () => {
    const { raw, hits } = tallyDetections(truth, [34, 35, 39], standard)
    expect(raw).toBeCloseTo(sigmoid(-6 / 10) / sigmoid(-1) - 1, 12)
    expect(hits).toBe(1)
  })

  it('charge a detection the less the closer it follows a window, and fully before the first one', () => {
    const rawOf = (row: number): number => tallyDetections(truth, [row], standard).raw + 2
    expect(rawOf(20)).toBeCloseTo(-0.11, 12)
    expect(rawOf(40)).toBeCloseTo(0.11 * sigmoid(1 / 9), 12)
    expect(rawOf(45)).toBeCloseTo(0.11 * sigmoid(6 / 9), 12)
    // More than three widths behind a window.
    expect(rawOf(99)).toBeCloseTo(-0.11, 12)
    expect(tallyDetections(truth, [20], lowFalsePositive).raw).toBeCloseTo(-2.22, 12)
    expect(tallyDetections(truth, [20], lowFalseNegative).raw).toBeCloseTo(-4.11, 12)
  })

  it('ignore probation: its detections, and a window that ends in it', () => {
    expect(tallyDetections(truth, [3, 14], standard)).toMatchObject({ raw: -2, falseAlarms: 0 })
    const early: NabTruth = { rows: 100, windows: [[2, 11]] }
    expect(tallyDetections(early, [5], standard)).toMatchObject({ raw: 0, windows: 0, hits: 0 })
  })

  it('choose the threshold that scores best over all files', () => {
    const scores = new Float64Array(100)
    scores[50] = 0.3
    scores[31] = 0.8
    scores[61] = 0.8
    scores[80] = 0.9
    const best = bestThreshold([{ ...truth, scores }], standard)
    expect(best.threshold).toBe(0.8)
    expect(best.tally).toMatchObject({ hits: 2, falseAlarms: 1 })
    expect(best.score).toBeCloseTo(scaledScore(tallyDetections(truth, [31, 61, 80], standard), standard), 12)
  })
})
