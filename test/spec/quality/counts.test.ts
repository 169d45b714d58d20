/**
 * Counts of the quality analyser against a reference computed from history, after late values, batches,
 * repeated values, a replaced entity and kills of the gateway between them.
 */
import { expect, it, vi } from 'vitest'
import { analysedSite, observationId, observationOf, patience, result, sosa } from './site.ts'

const minute = 60_000
const begin = Math.floor(Date.now() / minute) * minute - 300 * minute
const site = analysedSite({ SELVEDGE_QUALITY_WRITE_INTERVAL_MS: '0' })

/** Times of all observations of a stream, as history has them. */
async function history(name: string): Promise<number[]> {
  const path = `/ngsi-ld/v1/temporal/entities/${observationId(name)}?lastN=1000`
  const answer = await site.client().get(path)
  expect(answer.status).toBe(200)
  const instances = (answer.json() as Record<string, { observedAt: string }[]>)[`${sosa}hasSimpleResult`]!
  return instances.map(({ observedAt }) => Date.parse(observedAt)).toSorted((a, b) => a - b)
}

async function append(name: string, minutes: readonly number[]): Promise<void> {
  const answer = await site
    .client()
    .send('POST', `/ngsi-ld/v1/temporal/entities/${observationId(name)}/attrs`, {
      [`${sosa}hasSimpleResult`]: minutes.map((at) => result(at % 40, begin + at * minute)),
    })
  expect(answer.status).toBe(204)
}

it('counts every observation of history once, whatever arrives between kills', async () => {
  const names = ['counted', 'replaced']
  for (const name of names) await site.create(name, { seconds: 60, label: 'noise' })
  const observe = (name: string, at: number) => site.observe(name, at % 40, begin + at * minute)
  const upsert = async (at: number): Promise<void> => {
    const answer = await site.client().send(
      'POST',
      '/ngsi-ld/v1/entityOperations/upsert?options=update',
      names.map((name) => observationOf(name, at % 40, begin + at * minute)),
    )
    expect(answer.status).toBeLessThan(300)
  }

  for (let at = 0; at < 10; at++) await upsert(at)
  await site.kill()
  // A batch of past values, late ones among them. The newest and late ones come again after a kill.
  for (const name of names) await append(name, [20, 21, 22, 23, 12, 13])
  await site.kill()
  for (const name of names) for (const at of [23, 15, 30, 13, 15]) await observe(name, at)
  const replaced = await site
    .client()
    .send(
      'PUT',
      `/ngsi-ld/v1/entities/${observationId('replaced')}`,
      observationOf('replaced', 5, begin + 31 * minute),
    )
  expect(replaced.status).toBe(204)
  await site.kill()
  for (let at = 32; at < 40; at++) await upsert(at)
  await site.kill()
  await upsert(41)

  for (const name of names) {
    const times = await history(name)
    expect(times.length).toBeGreaterThan(25)
    expect(new Set(times).size).toBe(times.length)
    await vi.waitFor(async () => {
      const { observations, quality, lastObservedAt } = await site.stream(name)
      expect({ name, observations, lastObservedAt }).toEqual({
        name,
        observations: times.length,
        lastObservedAt: new Date(times.at(-1)!).toISOString(),
      })
      const { share, excused } = quality as { share: number; excused: number }
      const expected = (times.at(-1)! - times[0]!) / minute + 1 - excused
      expect(share).toBeCloseTo(times.length / expected, 3)
    }, patience)
  }
})
