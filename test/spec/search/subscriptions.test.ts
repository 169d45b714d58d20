/**
 * GraphQL subscriptions over a real gateway, with both protocols and their standard clients: matching changes
 * are sent, others are not, and a client that falls behind gets an error.
 */
import { createClient as createStreamClient } from 'graphql-sse'
import { createClient as createSocketClient } from 'graphql-ws'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import {
  fieldEntities,
  idOf,
  iotStream,
  platformOf,
  property,
  type SearchSite,
  sosa,
  startSearchSite,
} from '#test/kit/search-site.ts'

let site: SearchSite

beforeAll(async () => {
  site = await startSearchSite()
  await site.create([
    platformOf('d0', ['Temperature', 'Humidity'], [10, 50]),
    ...fieldEntities({ device: 'd0', field: 'Temperature', value: 20, completeness: 0.5 }),
    ...fieldEntities({ device: 'd0', field: 'Humidity', value: 50 }),
  ])
})

afterAll(() => site.close())

interface Client {
  subscribe(
    payload: { query: string },
    sink: { next(value: unknown): void; error(error: unknown): void; complete(): void },
  ): () => void
  dispose(): void | Promise<void>
}

const clients: Readonly<Record<string, () => Client>> = {
  'Server-Sent Events': () =>
    createStreamClient({ url: `${site.url}/search/graphql/stream`, retryAttempts: 0 }) as unknown as Client,
  WebSocket: () =>
    createSocketClient({
      url: `${site.url.replace('http', 'ws')}/search/graphql`,
      webSocketImpl: WebSocket,
      retryAttempts: 0,
    }) as unknown as Client,
}

interface Received {
  readonly values: { data?: Record<string, unknown>; errors?: { message: string }[] }[]
  readonly errors: unknown[]
  stop(): void
}

function listen(client: Client, query: string): Received {
  const received: Received = { values: [], errors: [], stop: () => undefined }
  const stop = client.subscribe(
    { query },
    {
      next: (value) => received.values.push(value as never),
      error: (error) => received.errors.push(error),
      complete: () => undefined,
    },
  )
  return { ...received, stop }
}

const observe = async (field: string, value: number, second: number): Promise<void> => {
  const at = new Date(Date.UTC(2026, 2, 1, 0, 0, second)).toISOString()
  const id = idOf('StreamObservation', 'd0', field)
  const answer = await fetch(`${site.url}/ngsi-ld/v1/entities/${id}/attrs`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      [`${sosa}hasSimpleResult`]: { ...property(value), observedAt: at, unitCode: 'CEL' },
    }),
  })
  expect(answer.status).toBe(204)
}

let second = 0

/** Repeats a change until an event arrives, because the subscription may not have started yet. */
const until = (received: Received, change: () => Promise<void>): Promise<void> =>
  expect
    .poll(
      async () => {
        await change()
        return received.values.length
      },
      { interval: 150 },
    )
    .toBeGreaterThan(0)

describe.each(Object.keys(clients))('by %s', (name) => {
  it('sends observations of a stream with linked entities, and no others', async () => {
    const client = clients[name]!()
    const received = listen(
      client,
      `subscription { streamObservations(belongsTo: { id: "${idOf('IotStream', 'd0', 'Temperature')}" }) {
        id hasSimpleResult belongsTo { quality { completeness { rated } } } } }`,
    )
    await until(received, async () => {
      await observe('Humidity', ++second, second)
      await observe('Temperature', 1000 + second, second)
    })
    const ids = received.values.map(({ data }) => (data!['streamObservations'] as { id: string }).id)
    expect(new Set(ids)).toEqual(new Set([idOf('StreamObservation', 'd0', 'Temperature')]))
    expect(received.values[0]!.data!['streamObservations']).toMatchObject({
      hasSimpleResult: expect.any(Number) as number,
      belongsTo: { quality: { completeness: { rated: 0.5 } } },
    })
    received.stop()
    await client.dispose()
  })

  it('sends an entity when it starts to match a filter', async () => {
    const client = clients[name]!()
    const query =
      'subscription { streams(filter: { quality: { completeness: { rated: { gt: 0.8 } } } }) { id } }'
    const received = listen(client, query)
    const [, stream] = fieldEntities({ device: `new-${second}`, field: 'CO2', value: 1, completeness: 0.9 })
    await until(received, async () => {
      await site.create(
        fieldEntities({ device: `new-${++second}`, field: 'CO2', value: 1, completeness: 0.9 }),
      )
      await site.create(fieldEntities({ device: `old-${second}`, field: 'CO2', value: 1, completeness: 0.2 }))
    })
    expect(stream!.type).toBe(`${iotStream}IotStream`)
    const ids = received.values.map(({ data }) => (data!['streams'] as { id: string }).id)
    expect(ids.every((id) => id.includes('new-'))).toBe(true)
    received.stop()
    await client.dispose()
  })

  it('sends deletions', async () => {
    const client = clients[name]!()
    const received = listen(client, 'subscription { deletions }')
    await until(received, async () => {
      const gone = platformOf(`gone-${++second}`, ['x'], [1, 1])
      await site.create([gone])
      await fetch(`${site.url}/ngsi-ld/v1/entities/${gone.id}`, { method: 'DELETE' })
    })
    expect(received.values[0]!.data!['deletions']).toContain('urn:ngsi-ld:Platform:gone-')
    received.stop()
    await client.dispose()
  })

  it('answers queries, and rejects invalid operations', async () => {
    const client = clients[name]!()
    const received = listen(client, '{ platforms(id: "urn:ngsi-ld:Platform:d0") { label } }')
    await expect.poll(() => received.values.length).toBe(1)
    expect(received.values[0]!.data).toEqual({ platforms: [{ label: 'platform d0' }] })
    const wrong = listen(client, 'subscription { nothing { id } }')
    await expect.poll(() => JSON.stringify([wrong.values, wrong.errors])).toContain('Cannot query field')
    await client.dispose()
  })
})

it('frees the resources of disconnected clients', async () => {
  const waiting = async (): Promise<unknown> => {
    const status = await fetch(`${site.url}/selvedge/v1/plugins`)
    const found = /"subscriptions":(\d+),"sockets":(\d+)/.exec(await status.text())
    return found?.slice(1)
  }
  const socket = clients['WebSocket']!()
  const received = listen(socket, 'subscription { platforms { id } }')
  const gone = new AbortController()
  const stream = await fetch(`${site.url}/search/graphql/stream`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({ query: 'subscription { deletions }' }),
    signal: gone.signal,
  })
  expect(stream.status).toBe(200)
  await expect.poll(waiting).toEqual(['2', '1'])
  gone.abort()
  await expect.poll(waiting).toEqual(['1', '1'])
  received.stop()
  await socket.dispose()
  await expect.poll(waiting).toEqual(['0', '0'])
})

it('ends the subscription of a client that does not read, with an error', async () => {
  const { createFeed } = await import('#plugins/search/reads/feed.ts')
  let take: (ids: readonly string[]) => void = () => undefined
  const feed = createFeed({
    position: () => 0,
    follow: (_from, follower) => {
      take = (ids) =>
        void follower.take({
          through: 1,
          at: 0,
          changed: [],
          deleted: [],
          observed: ids.map((id) => ({
            id,
            name: 'x',
            dataset: '',
            time: 0,
            value: 1,
            n: 1,
            committed: 0,
            isLate: false,
            via: undefined,
          })),
        })
      return { close: () => undefined }
    },
  })
  const waiting = feed.changes({ types: new Set(['T']) })
  take(['urn:a', 'urn:b', 'urn:a'])
  expect(await waiting.take(10)).toEqual(['urn:a', 'urn:b'])
  take(Array.from({ length: 1001 }, (_, index) => `urn:${index}`))
  await expect(waiting.take(10)).rejects.toThrow('subscribe again and reload')
  expect(feed.count()).toBe(0)
})
