/**
 * History by write time, when the write order differs from the order of observation: the answer has the
 * oldest or newest writes, wherever they are stored.
 */
import { expect, test } from 'vitest'
import { everySecond, type HistorySite, ids, megabyte, sitesOfFile, startMs } from '#test/kit/history-site.ts'

const { temporaryFolder, openSite } = sitesOfFile()
const [id] = ids as [string]
const perFold = 1000
const folds = 8

/** Folds observed one after the other, and written in the opposite order. */
async function openLate(): Promise<HistorySite> {
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte })
  await site.create(id)
  for (let i = 0; i < folds; i++) {
    await site.door.commit((stage) => {
      const { s } = site.streams.open(stage, site.documents.find(stage, id)!, 'level', '')
      const times = Float64Array.from(
        { length: perFold },
        (_, n) => startMs + (i * perFold + n) * everySecond,
      )
      const modified = times.map((_, n) => writtenAt(folds - 1 - i, n))
      const values = times.map((_, n) => i + n / perFold)
      stage.foldStream({
        s,
        folded: 0,
        times,
        modified,
        values,
        others: [],
        shapes: ['{"type":"Property"}'],
      })
    })
  }
  return site
}

const writtenAt = (fold: number, n: number): number => startMs + 1e9 + fold * 1e6 + n

test.each(['modifiedAt', 'createdAt'] as const)('over %s it is in write order', async (over) => {
  const site = await openLate()
  const read = (more: object) =>
    site.broker
      .history(id, { timeproperty: over, timerel: 'after', timeAtMs: startMs, limit: 20, ...more })!
      .attributes.get('level')!
      .filter(({ observedAt }) => observedAt !== undefined)
      .map(({ modifiedAt }) => modifiedAt)
  const window = { timerel: 'between', endTimeAtMs: writtenAt(folds, 0) }
  expect(read(window)).toEqual(Array.from({ length: 20 }, (_, n) => writtenAt(0, n)))
  const last = Array.from({ length: 5 }, (_, n) => writtenAt(folds - 1, perFold - 5 + n))
  expect(read({ ...window, lastN: 5 })).toEqual(last)
  // Includes the creation of the entity, which was written last and has no observation.
  expect(read({ lastN: 6 })).toEqual(last)
  const inside = { ...window, timeAtMs: writtenAt(3, 10), endTimeAtMs: writtenAt(3, 13) }
  expect(read(inside)).toEqual([10, 11, 12].map((n) => writtenAt(3, n)))
})
