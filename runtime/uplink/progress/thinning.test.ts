/**
 * Thinning of a history: every value is either sent or counted.
 */
import { describe, expect, it } from 'vitest'
import { keptOf } from './thinning.ts'

const valueAt = (i: number): string | number => (i % 25 === 0 ? 'alarm' : i)
const values = { valueAt, timeAt: (i: number): number => 1_767_225_600_000 + i * 1000 }
const places = Array.from({ length: 100 }, (_, i) => i)
const left = (level: Parameters<typeof keptOf>[2]['level']) => {
  const { kept, lost } = keptOf(values, places, { level, thinMs: 10_000 })
  expect(kept.length + (lost?.count ?? 0)).toBe(places.length)
  return { kept: kept.map(valueAt), lost }
}

describe('thinned history', () => {
  it('is empty at first', () => {
    expect(left('full')).toMatchObject({ kept: { length: 100 }, lost: undefined })
  })

  it('keeps the last number of each period, and everything else', () => {
    const { kept, lost } = left('thinned')
    expect(kept).toEqual(['alarm', 9, 19, 'alarm', 29, 39, 49, 'alarm', 59, 69, 'alarm', 79, 89, 99])
    expect(lost).toMatchObject({ from: 1_767_225_601_000, to: 1_767_225_698_000, reason: 'thinned' })
  })

  it('keeps values other than numbers, and then nothing', () => {
    expect(left('numberless').kept).toEqual(['alarm', 'alarm', 'alarm', 'alarm'])
    expect(left('bare')).toMatchObject({ kept: [], lost: { count: 100, reason: 'budget' } })
  })
})
