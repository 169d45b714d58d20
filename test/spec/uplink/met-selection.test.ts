/**
 * Selections by values: an entity that newly matches is sent to the centre in full, whatever changed, also
 * across restarts and outages; deletions are sent by the last state of the entity.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createFaultProxy, type FaultProxy } from '#test/kit/fault-proxy.ts'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { connectRaw } from '#test/kit/mqtt.ts'
import {
  observationId,
  publishAll,
  reading,
  result,
  streamObservation,
} from '#test/spec/journey/observations.ts'

const v1 = '/ngsi-ld/v1'
const entities = `${v1}/entities`
const withinMs = { interval: 50 }
const tank = 'urn:tank:1'
const at = (n: number): string => new Date(1_767_225_600_000 + n * 1000).toISOString().replace('.000', '')
const level = (value: number, n = value): object => ({
  level: { type: 'Property', value, observedAt: at(n) },
})
const rest = {
  name: { type: 'Property', value: 'north' },
  depth: { type: 'Property', value: 3, observedAt: at(0) },
  of: { type: 'Relationship', object: 'urn:site:1' },
}

describe('an uplink whose selection depends on values', () => {
  let folders: string
  let site: GatewayInside
  let hub: GatewayInside
  let way: FaultProxy

  const startSite = (): Promise<GatewayInside> =>
    startGatewayInside(join(folders, 'site'), { ...noPlugins, SELVEDGE_MQTT_PORT: '0' })
  const send = async (method: string, path: string, body?: object): Promise<void> => {
    const type = body !== undefined && '@context' in body ? 'application/ld+json' : 'application/json'
    const answer = await site.send(method, path, body, { 'content-type': type })
    if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
  }
  const change = (body: object, id = tank): Promise<void> => send('PATCH', `${entities}/${id}/attrs`, body)
  const create = (body: object, id = tank): Promise<void> =>
    send('POST', entities, { id, type: 'Tank', ...body })
  const subscribe = (more: object): Promise<void> =>
    send('POST', `${v1}/subscriptions`, {
      id: 'urn:up',
      type: 'Subscription',
      ...more,
      notification: {
        endpoint: { uri: `${way.url}${v1}`, notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }] },
      },
    })
  const above = (q: string): Promise<void> => subscribe({ entities: [{ type: 'Tank' }], q })
  const holds = (expected: object, id = tank): Promise<void> =>
    vi.waitFor(async () => expect((await hub.get(`${entities}/${id}`)).json()).toEqual(expected), withinMs)
  const holdsWhole = async (id = tank): Promise<void> => {
    const here = (await site.get(`${entities}/${id}`)).json() as object
    await holds(here, id)
  }
  /** Everything earlier has been sent, or never will be. */
  const settled = async (): Promise<void> => {
    await create({ level: { type: 'Property', value: 99 } }, 'urn:tank:last')
    await vi.waitFor(
      async () => expect((await hub.get(`${entities}/urn:tank:last`)).status).toBe(200),
      withinMs,
    )
    await send('DELETE', `${entities}/urn:tank:last`)
    await vi.waitFor(
      async () => expect((await hub.get(`${entities}/urn:tank:last`)).status).toBe(404),
      withinMs,
    )
  }
  const isNotThere = async (id = tank): Promise<void> =>
    expect((await hub.get(`${entities}/${id}`)).status).toBe(404)
  /** Longer than the live lane replays. */
  const cutFor = async (during: () => Promise<void>): Promise<void> => {
    await way.set('refused')
    await create({ ...level(50), name: rest.name }, 'urn:tank:first')
    // The live lane is busy with that, and reads nothing that follows.
    await new Promise((resolve) => setTimeout(resolve, 400))
    await during()
    await new Promise((resolve) => setTimeout(resolve, 1200))
    await create({}, 'urn:tank:cut')
    await way.set('none')
  }

  beforeEach(async () => {
    setLimit('uplinkBehindMs', 500)
    folders = mkdtempSync(join(tmpdir(), 'selvedge-met-'))
    ;[site, hub] = await Promise.all([startSite(), startGatewayInside(join(folders, 'hub'), noPlugins)])
    way = await createFaultProxy({ target: { host: '127.0.0.1', port: hub.httpPort! } })
  })
  afterEach(async () => {
    await Promise.all([site.close(), hub.close()])
    await way.close()
    restoreLimits()
    rmSync(folders, { recursive: true })
  })

  it('sends a newly matching entity in full, and each change from then on', async () => {
    await create({ ...level(1), ...rest })
    await above('level>10')
    await settled()
    await isNotThere()
    await change(level(20))
    await holdsWhole()
    await change(level(30))
    await change({ name: { type: 'Property', value: 'south' } })
    await holdsWhole()
    const path = `${v1}/temporal/entities/${tank}?attrs=level&options=temporalValues`
    expect((await hub.get(path)).json()).toMatchObject({
      level: {
        values: [
          [20, at(20)],
          [30, at(30)],
        ],
      },
    })
  })

  it('re-sends a matching entity in full, without attributes deleted while it did not match', async () => {
    await create({ ...level(20), ...rest })
    await above('level>10')
    await holdsWhole()
    const held = (await hub.get(`${entities}/${tank}`)).json() as object
    await change(level(1, 21))
    await change({ name: { type: 'Property', value: 'south' } })
    await send('DELETE', `${entities}/${tank}/attrs/depth`)
    await settled()
    // An entity that no longer matches stays as last sent.
    await holds(held)
    await change(level(30))
    await holdsWhole()
  })

  it('sends an entity in full that matched only for a moment, with the matching values', async () => {
    await create({ ...level(1), ...rest })
    await above('level>10')
    await settled()
    setLimit('uplinkPollMs', 1000)
    await new Promise((resolve) => setTimeout(resolve, 1000))
    for (const value of [20, 21, 2]) await change(level(value, value === 2 ? 22 : value))
    await holds({ id: tank, type: 'Tank', ...level(21), ...rest })
  })

  it('sends a matching entity in full if the deciding attribute itself is not sent', async () => {
    await create({ ...level(1), ...rest })
    await subscribe({ entities: [{ type: 'Tank' }], q: 'level>10', watchedAttributes: ['name', 'depth'] })
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await isNotThere()
    await change(level(20))
    await holds({ id: tank, type: 'Tank', name: rest.name, depth: rest.depth })
  })

  it('sends an entity in full that newly matches by its location', async () => {
    const place = (x: number): object => ({
      location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [x, 48] } },
    })
    await create({ ...place(1), ...level(1), ...rest })
    const polygon = [
      [
        [9, 47],
        [13, 47],
        [13, 49],
        [9, 49],
        [9, 47],
      ],
    ]
    await subscribe({
      entities: [{ type: 'Tank' }],
      geoQ: { georel: 'within', geometry: 'Polygon', coordinates: polygon },
    })
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await isNotThere()
    await change(place(11))
    await holdsWhole()
  })

  it('sends an entity in full that newly matches by an observation of a device', async () => {
    const device = await connectRaw(site.mqttPort!, 'devices')
    const publish = (value: number): Promise<void> =>
      publishAll(device, [{ topic: 'senml/x', payload: reading('pump:temp', value, 1_767_225_600 + value) }])
    const id = observationId('pump:temp')
    await publish(1)
    await send('POST', `${entities}/${id}/attrs`, rest)
    const type = streamObservation
    await subscribe({ '@context': { seen: result }, entities: [{ type }], q: 'seen>10' })
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await isNotThere(id)
    await publish(20)
    await holdsWhole(id)
    await publish(30)
    await holdsWhole(id)
    device.end()
  })

  it('remembers synced entities across a restart, and sends newly matching ones in full', async () => {
    await create({ ...level(20), ...rest })
    await create({ ...level(1), ...rest }, 'urn:tank:2')
    await above('level>10')
    await holdsWhole()
    await settled()
    const path = `${v1}/temporal/entities/${tank}?attrs=name&timeproperty=modifiedAt`
    const names = async (): Promise<unknown> => (await hub.get(path)).json()
    const before = await names()
    await site.close()
    site = await startSite()
    await change(level(20), 'urn:tank:2')
    await change(level(30))
    await holdsWhole('urn:tank:2')
    await holdsWhole()
    // Synced entities were not sent again.
    expect(await names()).toEqual(before)
  })

  it.each(['while it runs', 'over a restart'])(
    'sends an entity in full that matched during an outage, %s',
    async (how) => {
      await create({ ...level(1), ...rest })
      await create({ ...level(1), ...rest }, 'urn:tank:2')
      await above('level>10')
      await settled()
      await cutFor(async () => {
        await change(level(20))
        // It matches for a while only: the centre holds that state.
        await change(level(21), 'urn:tank:2')
        await change(level(2, 22), 'urn:tank:2')
        if (how === 'while it runs') return
        await site.close()
        site = await startSite()
      })
      await holdsWhole()
      await holds({ id: 'urn:tank:2', type: 'Tank', ...level(21), ...rest }, 'urn:tank:2')
      await holdsWhole('urn:tank:first')
    },
  )

  it('sends the history of an entity deleted during an outage, and then its deletion', async () => {
    await create({ ...level(20), ...rest })
    await above('level>10;name=="north"')
    await holdsWhole()
    await cutFor(async () => {
      for (const value of [21, 22, 23]) await change(level(value))
      await change({ depth: { type: 'Property', value: 4, observedAt: at(9) } })
      await send('DELETE', `${entities}/${tank}`)
    })
    await vi.waitFor(() => isNotThere(), withinMs)
    const told = async (of: GatewayInside): Promise<unknown> => {
      const path = `${v1}/temporal/entities/${tank}?attrs=level,depth&options=temporalValues`
      const { level: levels, depth }: { level: unknown; depth: unknown } = (await of.get(path)).json()
      return { levels, depth }
    }
    await vi.waitFor(async () => expect(await told(hub)).toEqual(await told(site)), withinMs)
    await vi.waitFor(() => isNotThere(), withinMs)
  })

  it('leaves nothing current of an entity that matched during an outage and was deleted', async () => {
    await create({ ...level(1), ...rest })
    await above('level>10')
    await settled()
    await cutFor(async () => {
      await change(level(20))
      await change(level(2, 22))
      await send('DELETE', `${entities}/${tank}`)
    })
    const path = `${v1}/temporal/entities/${tank}?attrs=level&options=temporalValues`
    await vi.waitFor(
      async () => expect((await hub.get(path)).json()).toMatchObject({ level: { values: [[20, at(20)]] } }),
      withinMs,
    )
    await vi.waitFor(() => isNotThere(), withinMs)
  })
})
