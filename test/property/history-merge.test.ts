/**
 * Merging histories of one entity: the result has every instance once, regardless of its sources. If a source
 * is solely responsible, only its instances count; auxiliary sources never change those of others. A cut
 * result is complete up to its end.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { EntityCopy } from '#ngsi-ld/federation/distribution.ts'
import { type HistoryCopy, mergeHistories } from '#ngsi-ld/federation/history-merge.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'

const copyOf = (mode: EntityCopy['mode'], minutes: readonly number[], end?: number): HistoryCopy => {
  const instances = minutes
    .toSorted((a, b) => a - b)
    .map((observedAt) => ({
      instance: { type: 'Property', value: observedAt, observedAt: msToDateTime(observedAt) },
      observedAt,
      createdAt: 1,
      modifiedAt: 1,
      instanceId: `urn:i:${observedAt}`,
    }))
  const entity = { id: 'urn:e:1', type: 'T' }
  const history = { ...entity, entity, attributes: new Map([['flow', instances]]), cut: new Set<string>() }
  return { mode, claim: 'all', history, end }
}

const times = fc.uniqueArray(fc.integer({ min: 0, max: 200 }), { maxLength: 20 })
const everything = { timeproperty: 'observedAt', limit: Number.MAX_SAFE_INTEGER } as const
const valuesOf = (copies: readonly HistoryCopy[], selection = {}): unknown[] =>
  (mergeHistories(copies, { ...everything, ...selection }).attributes.get('flow') ?? []).map(
    ({ instance }) => instance['value'],
  )
const union = (...lists: readonly (readonly number[])[]): number[] =>
  [...new Set(lists.flat())].toSorted((a, b) => a - b)

describe('the merged histories of one entity', () => {
  it('have every instance once, in order, from any source', () => {
    fc.assert(
      fc.property(times, times, times, (a, b, c) => {
        const copies = [copyOf('local', a), copyOf('inclusive', b), copyOf('inclusive', c)]
        expect(valuesOf(copies)).toEqual(union(a, b, c))
        expect(valuesOf(copies.toReversed())).toEqual(union(a, b, c))
        expect(valuesOf([...copies, ...copies])).toEqual(union(a, b, c))
      }),
    )
  })

  it('have only instances of responsible sources, if any, and never depend on auxiliary ones', () => {
    fc.assert(
      fc.property(
        times,
        times,
        times,
        fc.constantFrom('exclusive' as const, 'redirect' as const),
        (a, b, c, mode) => {
          expect(valuesOf([copyOf('local', a), copyOf(mode, b), copyOf('inclusive', c)])).toEqual(union(b))
          const main = copyOf('local', a)
          const auxiliary = copyOf('auxiliary', b)
          expect(valuesOf([main, auxiliary])).toEqual(a.length > 0 ? union(a) : union(b))
        },
      ),
    )
  })

  it('have the newest instances of all with lastN', () => {
    fc.assert(
      fc.property(times, times, fc.integer({ min: 1, max: 10 }), (a, b, lastN) => {
        expect(valuesOf([copyOf('local', a), copyOf('inclusive', b)], { lastN })).toEqual(
          union(a, b).slice(-lastN),
        )
      }),
    )
  })

  it('end where the first incomplete source ends, and are marked as cut', () => {
    fc.assert(
      fc.property(times, times, fc.integer({ min: 0, max: 200 }), (a, b, end) => {
        const part = [...b.filter((time) => time < end), end]
        const copies = [copyOf('local', a), copyOf('inclusive', part, end)]
        expect(valuesOf(copies)).toEqual(union(a, part).filter((time) => time <= end))
        expect(mergeHistories(copies, everything).cut).toEqual(new Set(['flow']))
      }),
    )
  })

  it('are not cut if only an ignored source is cut', () => {
    const [kept, responsible] = [copyOf('local', [1, 2]), copyOf('exclusive', [5])]
    const partOfIt: HistoryCopy = { ...kept, history: { ...kept.history, cut: new Set(['flow']) } }
    expect(mergeHistories([partOfIt, responsible], everything).cut).toEqual(new Set())
    expect(mergeHistories([partOfIt, copyOf('inclusive', [5])], everything).cut).toEqual(new Set(['flow']))
  })
})
