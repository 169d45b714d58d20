/** Estimates from neighbours: of the usual difference, agreeing, varying, and without those that are faulty. */
import { describe, expect, it } from 'vitest'
import { type FaultStream, newRecord } from './fault-stream.ts'
import { createNeighbourhood } from './neighbourhood.ts'

const minute = 60_000

function streamOf(name: string, north: number): FaultStream {
  return {
    id: name,
    types: [],
    sensorId: name,
    sources: [],
    isDoubtful: false,
    observations: new Set(),
    metadata: {
      intervalMs: minute,
      label: 'temperature',
      place: [10, 56 + north],
      isExempt: false,
      isInferred: false,
    },
    detector: undefined,
    buffered: [],
    record: { ...newRecord(), state: 'normal' },
  }
}

/** A stream, two neighbours that are 2 above and 3 below it, and one that is too far away. */
function site() {
  const all = [streamOf('own', 0), streamOf('above', 0.01), streamOf('below', 0.02), streamOf('far', 1)]
  const neighbours = createNeighbourhood({ radiusMeters: 20_000 })
  for (const stream of all) neighbours.describe(stream)
  const offsets = [0, 2, -3, 50]
  const sample = (n: number, given = (base: number) => base) => {
    for (const [i, stream] of all.toReversed().entries()) {
      const { record } = stream
      const value = given(20 + Math.sin(n)) + offsets[all.length - 1 - i]!
      record.equalValues = record.last?.value === value ? record.equalValues + 1 : 1
      record.last = { time: n * minute, value, observation: stream.id, committedAt: n * minute }
    }
    neighbours.learn(all[0]!)
  }
  return { all, neighbours, sample }
}

describe('the estimate from neighbours', () => {
  it('is the value of the stream by the usual differences', () => {
    const { all, neighbours, sample } = site()
    for (let n = 0; n < 29; n++) sample(n)
    expect(neighbours.estimate(all[0]!, 29 * minute)).toBeUndefined()
    for (let n = 29; n < 60; n++) sample(n)
    const estimate = neighbours.estimate(all[0]!, 59 * minute)!
    expect(estimate.value).toBeCloseTo(20 + Math.sin(59), 3)
    expect(estimate.error).toBeLessThan(0.01)
    expect(estimate).toMatchObject({ isVarying: true, areAgreeing: true })
    expect(Object.keys(all[0]!.record.differences).toSorted()).toEqual(['above', 'below'])
  })

  it('says that neighbours which stay constant do not vary', () => {
    const { all, neighbours, sample } = site()
    for (let n = 0; n < 60; n++) sample(n, () => 20)
    expect(neighbours.estimate(all[0]!, 59 * minute)).toMatchObject({ isVarying: false })
  })

  it('says that neighbours which contradict each other do not agree', () => {
    const { all, neighbours, sample } = site()
    for (let n = 0; n < 60; n++) sample(n)
    const { record } = all[1]!
    record.last = { ...record.last!, value: 90 }
    expect(neighbours.estimate(all[0]!, 59 * minute)).toMatchObject({ areAgreeing: false })
  })

  it('lets neighbours differ by three standard deviations', () => {
    const { all, neighbours, sample } = site()
    for (let n = 0; n < 60; n++) sample(n)
    const [own, above] = all as [FaultStream, FaultStream]
    for (const difference of Object.values(own.record.differences)) difference.variance = 0.5
    const { value } = above.record.last!
    const agreeWith = (more: number) => {
      above.record.last = { ...above.record.last!, value: value + more }
      return neighbours.estimate(own, 59 * minute)!.areAgreeing
    }
    expect([agreeWith(2.9), agreeWith(3.1)]).toEqual([true, false])
  })

  it('leaves out neighbours that are faulty, silent, or of bad quality', () => {
    const { all, neighbours, sample } = site()
    for (let n = 0; n < 60; n++) sample(n)
    all[1]!.record.state = 'fault'
    expect(neighbours.estimate(all[0]!, 59 * minute)).toMatchObject({ areAgreeing: false })
    all[2]!.isDoubtful = true
    expect(neighbours.estimate(all[0]!, 59 * minute)).toBeUndefined()
    all[2]!.isDoubtful = false
    expect(neighbours.estimate(all[0]!, 70 * minute)).toBeUndefined()
  })
})
