/** When qualities are written, and in which order while more streams changed than one request has room for. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { type Clock, systemClock } from '#base/time/clock.ts'
import type { BrokerRequest } from '#contract'
import { figureNames, hasQuality } from '#plugins/quality/entities/quality-entity.ts'
import { createRecordRows } from '#plugins/quality/measures/record-rows.ts'
import { createQualityWriter } from './quality-writer.ts'
import { onlyOwnLink, type Stream } from './stream.ts'

const records = createRecordRows()
const none: readonly string[] = []
const streamOf = (n: number): Stream => ({
  n,
  id: `urn:s:${n}`,
  sensor: undefined,
  property: undefined,
  others: none,
  services: none,
  observedBy: undefined,
  metadata: { isInferred: false },
  record: records.create(),
  links: onlyOwnLink,
  written: undefined,
})

/** A writer whose requests are recorded; figures are set by the test. */
function site({ intervalMs, clock }: { readonly intervalMs: number; readonly clock: Clock }) {
  const requests: string[][] = []
  const links: [path: string, body: unknown][] = []
  const rated = new Map<Stream, number>()
  const figures = { absolute: 0 }
  const writer = createQualityWriter(
    {
      broker: () => ({
        address: 'broker',
        async exchange({ path, body }: BrokerRequest) {
          const sent = JSON.parse(String(body)) as { id: string }[] | object
          if (Array.isArray(sent)) requests.push(sent.map(({ id }) => id))
          else links.push([path, sent])
          return { status: 204, headers: {}, text: '' }
        },
      }),
      figures: (stream) => {
        const figure = { attribute: {}, absolute: `${figures.absolute}`, rated: `${rated.get(stream) ?? 1}` }
        return new Map([[figureNames[0]!, figure]])
      },
      ratedState: (stream) => rated.get(stream) ?? 1,
      exists: () => true,
      isRatedElsewhere: () => false,
      written: () => undefined,
      clock,
      log: createLog({ level: 'error', clock, write: () => undefined }),
    },
    { intervalMs: () => intervalMs },
  )
  return { writer, requests, links, rated, figures }
}

const qualityOf = ({ id }: Stream): string => `urn:ngsi-ld:QoI:${id}`

it('writes a changed rated value before other figures that are due, and each of those in its turn', async () => {
  const streams = Array.from({ length: 3 * limits.qualityBatchStreams.value }, (_, n) => streamOf(n))
  const { writer, requests, rated, figures } = site({ intervalMs: 0, clock: systemClock })
  const isIdle = () => vi.waitFor(() => expect(writer.waiting()).toBe(0), { timeout: 60_000 })
  const noteAll = (): void => {
    for (const stream of streams) writer.note(stream)
  }
  noteAll()
  await isIdle()
  requests.length = 0
  figures.absolute = 1
  noteAll()
  const last = streams.at(-1)!
  rated.set(last, 0)
  writer.note(last)
  await isIdle()
  await writer.close()
  expect(requests[0]).toContain(qualityOf(last))
  expect(requests.flat().toSorted()).toEqual(streams.map(qualityOf).toSorted())
})

it('links a stream by appending to it, since some brokers ignore new attributes in a batch update', async () => {
  const { writer, links } = site({ intervalMs: 0, clock: systemClock })
  const stream: Stream = { ...streamOf(1), links: none }
  writer.note(stream)
  await vi.waitFor(() => expect(links).not.toEqual([]))
  await writer.close()
  const link = { [hasQuality]: { type: 'Relationship', object: qualityOf(stream) } }
  expect(links).toEqual([['/ngsi-ld/v1/entities/urn%3As%3A1/attrs', link]])
  expect(stream.links).toEqual(onlyOwnLink)
})

describe('with a long write interval', () => {
  const hour = 3_600_000
  let now = 0
  const clock = { ...systemClock, now: () => now, monotonic: () => now }
  beforeEach(() => {
    now = 0
    vi.useFakeTimers()
  })
  afterEach(() => vi.useRealTimers())

  async function pass(ms: number): Promise<void> {
    now += ms
    await vi.advanceTimersByTimeAsync(1000)
  }

  it('writes a changed rated value at once, and other figures when the interval ends', async () => {
    const [changed, unchanged] = [streamOf(1), streamOf(2)] as const
    const { writer, requests, rated, figures } = site({ intervalMs: hour, clock })
    const note = async (): Promise<void> => {
      for (const stream of [changed, unchanged]) writer.note(stream)
      await pass(1000)
    }
    await note()
    expect(requests).toEqual([[qualityOf(changed), qualityOf(unchanged)]])
    requests.length = 0

    figures.absolute = 1
    rated.set(changed, 0)
    await note()
    expect(requests).toEqual([[qualityOf(changed)]])
    await pass(hour - 10_000)
    expect(requests).toEqual([[qualityOf(changed)]])
    await pass(10_000)
    expect(requests).toEqual([[qualityOf(changed)], [qualityOf(unchanged)]])
    await writer.close()
  })
})
