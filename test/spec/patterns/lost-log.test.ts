/** A pattern extractor whose place in the log was trimmed reads the missed observations from history. */
import { expect, it, vi } from 'vitest'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { eventId } from '#plugins/patterns/events/event-entity.ts'
import patterns from '#plugins/patterns/plugin.ts'
import { observe } from '#test/kit/broker.ts'
import { setLimit } from '#test/kit/ceilings.ts'
import { pluginsOfFile } from '#test/kit/plugins-of-file.ts'

const site = pluginsOfFile()
const settings = { batchOperations: false, keepEventsHours: 72 }
const start = (): Promise<void> => site.start([patterns], settings)
const to = (object: string) => ({ type: 'Relationship', object })
const begin = Date.UTC(2026, 0, 1)
const at = (row: number): number => begin + row * 60_000

async function createStream(name: string): Promise<void> {
  const stream = {
    id: `urn:x:${name}`,
    type: iotStream.IotStream,
    [sosa.observes]: to(`urn:p:${name}`),
    location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [1, 2] } },
  }
  const observation = {
    id: `urn:o:${name}`,
    type: iotStream.StreamObservation,
    [iotStream.belongsTo]: to(stream.id),
    [sosa.hasSimpleResult]: { type: 'Property', value: 0, observedAt: msToDateTime(at(-1)) },
  }
  for (const entity of [stream, observation])
    await site.open.broker.create(entity as unknown as Entity, 'http')
}

async function observeRows(from: number, through: number): Promise<void> {
  for (let row = from; row <= through; row++)
    for (const name of ['a', 'b'])
      await observe(site.open, `urn:o:${name}`, sosa.hasSimpleResult, at(row), row % 5)
}

/** Ids of the events that the extractor wrote; the broker of this test answers 418, which is logged. */
const written = (): unknown[] =>
  site.open.logged.filter(({ event }) => event === 'patterns.event-refused').map(({ id }) => id)

it('analyses what it missed, in order of time', async () => {
  await createStream('a')
  await createStream('b')
  await start()
  const mixture = {
    weights: [1],
    means: [[0, 0]],
    covariances: [
      [
        [1, 0],
        [0, 1],
      ],
    ],
  }
  const body = { observableProperties: ['urn:p:a', 'urn:p:b'], model: mixture, temporal: { window: 3 } }
  const made = await site.ask(
    'patterns',
    new Request('http://x/api/model', { method: 'POST' }),
    JSON.stringify(body),
  )
  const { id } = (await made.json()) as { id: string }
  const key = [id, 'urn:x:a', 'urn:x:b'].join(' ')
  const ids = (from: number, through: number): string[] =>
    Array.from({ length: through - from + 1 }, (_, i) => eventId(key, at(from + i)))
  await observeRows(0, 5)
  await vi.waitFor(() => expect(written()).toEqual(ids(2, 5)))
  await site.host.close()
  setLimit('logBytesMax', 1)
  await observeRows(6, 20)
  const { number } = site.open.main.door.status()
  await vi.waitFor(async () => {
    await site.open.upkeep()
    expect(site.open.main.records.logAfter(0, 1)[0]!.n).toBeGreaterThan(number - 20)
  })
  await start()
  await vi.waitFor(() => expect(written()).toEqual(ids(2, 20)))
  await observeRows(21, 21)
  await vi.waitFor(() => expect(written()).toEqual(ids(2, 21)))
})
