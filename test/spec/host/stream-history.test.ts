/**
 * A plugin reads the history of a stream in slices: at the broker of this gateway in process, and at another
 * gateway over HTTP, by the same function.
 */
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import { type BrokerPort, type HistoryRange, type PastValue, type StreamKey, streamHistory } from '#contract'
import { createOwnBrokerPort } from '#host/own-broker-port.ts'
import { openRemoteBroker } from '#host/remote-broker-port.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile({ temporalInstancesMax: 30 })
const ports: { close(): void }[] = []
afterAll(() => {
  for (const port of ports) port.close()
})
afterEach(restoreLimits)

const remote = (tenant?: string) => {
  const port = openRemoteBroker({ url: gateway.url, tenant }, { allowsLoopback: true }, systemClock)
  ports.push(port)
  return port
}
const brokers: [string, () => BrokerPort][] = [
  ['the own broker', () => createOwnBrokerPort(() => 'mdr', gateway.serve)],
  ['another gateway', () => remote()],
]

const begin = Date.UTC(2026, 0, 1)
const at = (second: number): number => begin + second * 1000

/** Appends values as history, at these seconds. */
async function store(
  id: string,
  name: string,
  values: readonly [second: number, value: unknown, more?: object][],
) {
  const instances = values.map(([second, value, more]) =>
    property(value, { observedAt: new Date(at(second)).toISOString(), ...more }),
  )
  const answer = await gateway.send('POST', '/ngsi-ld/v1/temporal/entities', {
    id,
    type: 'T',
    [name]: instances,
  })
  expect(answer.status).toBeLessThan(300)
}

const numbered = (count: number) => Array.from({ length: count }, (_, i): [number, number] => [i, i])

async function slicesOf(broker: BrokerPort, stream: StreamKey, range: HistoryRange = {}) {
  const slices: (readonly PastValue[])[] = []
  for await (const slice of streamHistory(broker, stream, range)) slices.push(slice)
  return slices
}

/** The values of all slices in order of time. */
const valuesOf = (slices: readonly (readonly PastValue[])[]) =>
  slices
    .toReversed()
    .flat()
    .map(({ value }) => value)

describe.each(brokers)('the history of a stream at %s', (_, open) => {
  it('is read in slices with observation and commit times, each value once', async () => {
    const id = freshId()
    const before = Date.now()
    await store(id, 'a', numbered(100))
    setLimit('pluginSliceObservations', 16)
    const slices = await slicesOf(open(), { id, name: 'a', dataset: '' })
    expect(valuesOf(slices)).toEqual(numbered(100).map(([, value]) => value))
    expect(Math.max(...slices.map(({ length }) => length))).toBeLessThanOrEqual(16)
    const [first] = slices.at(-1)!
    expect(first).toEqual({ time: begin, value: 0, committed: expect.any(Number) as number })
    expect(first!.committed).toBeGreaterThanOrEqual(before)
  })

  it('is read by time, from inclusive and to exclusive, and up to the last values', async () => {
    const id = freshId()
    const stream = { id, name: 'https://example.org/b', dataset: '' }
    await store(id, stream.name, numbered(80))
    const read = async (range: HistoryRange) => valuesOf(await slicesOf(open(), stream, range))
    expect(await read({ from: at(10), to: at(13) })).toEqual([10, 11, 12])
    expect(await read({ last: 3 })).toEqual([77, 78, 79])
    expect(await read({ to: at(50), last: 2 })).toEqual([48, 49])
    expect(await read({ from: at(79), last: 5 })).toEqual([79])
    expect(await read({ last: 70 })).toEqual(
      numbered(80)
        .slice(10)
        .map(([, value]) => value),
    )
    expect(await read({ from: at(80) })).toEqual([])
  })

  it('keeps values of one time together', async () => {
    const id = freshId()
    await store(id, 'a', [
      [0, 1],
      [1, 2],
      [1, 3],
      [1, 4],
      [2, 5],
      [3, 6],
    ])
    setLimit('pluginSliceObservations', 4)
    const slices = await slicesOf(open(), { id, name: 'a', dataset: '' })
    expect(slices.map((slice) => slice.map(({ value }) => Number(value)).toSorted((a, b) => a - b))).toEqual([
      [5, 6],
      [2, 3, 4],
      [1],
    ])
  })

  it('separates the instances of an attribute', async () => {
    const id = freshId()
    const datasetId = 'urn:x:set'
    await store(id, 'a', [
      [0, 1],
      [1, 'x', { datasetId }],
      [2, 2],
      [3, 'y', { datasetId }],
    ])
    const read = async (dataset: string) =>
      valuesOf(await slicesOf(open(), { id, name: 'a', dataset }, { last: 2 }))
    expect(await read('')).toEqual([1, 2])
    expect(await read(datasetId)).toEqual(['x', 'y'])
  })

  it('is empty for an unknown entity or attribute', async () => {
    const id = freshId()
    await store(id, 'a', numbered(1))
    expect(await slicesOf(open(), { id, name: 'other', dataset: '' })).toEqual([])
    expect(await slicesOf(open(), { id: freshId(), name: 'a', dataset: '' })).toEqual([])
  })
})

it('separates instances at a broker that does not know datasetId as a parameter', async () => {
  const id = freshId()
  const datasetId = 'urn:x:set'
  const others = numbered(20).map(([second, value]): [number, number, object] => [
    second,
    value,
    { datasetId },
  ])
  await store(id, 'a', [...others, [5, 'mine'], [6, 'mine too']])
  const broker = remote()
  const older: BrokerPort = {
    ...broker,
    exchange: (request) =>
      request.path.includes('datasetId=')
        ? Promise.resolve({ status: 400, headers: {}, text: 'unknown parameter datasetId' })
        : broker.exchange(request),
  }
  setLimit('pluginSliceObservations', 6)
  const slices = await slicesOf(older, { id, name: 'a', dataset: '' }, { last: 2 })
  expect(valuesOf(slices)).toEqual(['mine', 'mine too'])
})

it('fails with what the broker answered', async () => {
  const refused = slicesOf(remote('not/a/tenant'), { id: freshId(), name: 'a', dataset: '' })
  await expect(refused).rejects.toMatchObject({ code: 'peer.refused' })
  const silent = openRemoteBroker({ url: 'http://127.0.0.1:1' }, { allowsLoopback: true }, systemClock)
  ports.push(silent)
  const unreached = slicesOf(silent, { id: freshId(), name: 'a', dataset: '' })
  await expect(unreached).rejects.toMatchObject({ code: 'peer.unavailable' })
})
