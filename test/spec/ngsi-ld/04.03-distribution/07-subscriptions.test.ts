/**
 * Distributed subscriptions between whole gateways: a subscription is forwarded to the sources, they notify
 * this gateway, and it notifies the subscriber. Changes and deletions are forwarded, also to sources that
 * were unreachable; circles end.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { startHttpGateway } from '#test/kit/http-gateway.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'

const api = '/ngsi-ld/v1'
const at = (value: unknown) => ({ type: 'Property', value })

interface Shown {
  readonly id: string
  readonly entities: readonly object[]
  readonly watchedAttributes?: readonly string[]
  readonly q?: string
  readonly notification: {
    readonly attributes?: readonly string[]
    readonly endpoint: { readonly uri: string }
    readonly timesSent?: number
  }
}

describe('GS CIM 009, 4.3.6: distributed subscriptions', () => {
  const folders = ['here', 'there'].map((name) => mkdtempSync(join(tmpdir(), `selvedge-${name}-`)))
  let here: GatewayInside
  let there: GatewayInside
  let receiver: Receiver
  beforeAll(async () => {
    here = await startGatewayInside(folders[0]!, noPlugins)
    there = await startGatewayInside(folders[1]!, noPlugins)
    receiver = await createReceiver()
  })
  afterAll(async () => {
    await receiver.down()
    await here.close()
    await there.close()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })
  const urlOf = ({ httpPort }: GatewayInside): string => `http://127.0.0.1:${httpPort}`
  const idsOf = async (gateway: GatewayInside, path: string): Promise<string[]> =>
    ((await gateway.get(`${api}/${path}`)).json() as { id: string }[]).map(({ id }) => id)
  afterEach(async () => {
    for (const gateway of [here, there])
      for (const path of ['csourceRegistrations', 'subscriptions', 'entities'])
        for (const id of await idsOf(
          gateway,
          `${path}${path === 'subscriptions' ? '' : '?type=Pump&local=true'}`,
        ))
          await gateway.ask('DELETE', `${api}/${path}/${id}${path === 'entities' ? '?local=true' : ''}`)
    await vi.waitFor(async () => expect(await idsOf(there, 'subscriptions')).toEqual([]))
    receiver.forget()
  })
  const register = async (members: object, gateway = here): Promise<string> => {
    const body = {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      endpoint: urlOf(there),
      ...members,
    }
    const made = await gateway.send('POST', `${api}/csourceRegistrations`, body)
    expect([made.status, made.text]).toEqual([201, ''])
    return made.headers['location']!
  }
  const subscribe = async (members: object, headers = {}): Promise<string> => {
    const body = {
      type: 'Subscription',
      entities: [{ type: 'Pump' }],
      notification: { endpoint: { uri: receiver.url() } },
      ...members,
    }
    const made = await here.send('POST', `${api}/subscriptions`, body, headers)
    expect([made.status, made.text]).toEqual([201, ''])
    return made.headers['location']!.split('/').at(-1)!
  }
  const passedOn = (count: number, tenant?: string): Promise<Shown[]> =>
    vi.waitFor(async () => {
      const headers = tenant === undefined ? {} : { 'NGSILD-Tenant': tenant }
      const all = (await there.get(`${api}/subscriptions`, headers)).json() as Shown[]
      expect(all).toHaveLength(count)
      return all
    })
  const bodies = (count: number): Promise<{ subscriptionId: string; data: Record<string, unknown>[] }[]> =>
    vi.waitFor(() => {
      expect(receiver.received).toHaveLength(count)
      return receiver.received.map(({ body }) => JSON.parse(body) as never)
    })
  const make = (gateway: GatewayInside, id: string, attributes: object) =>
    gateway.send('POST', `${api}/entities?local=true`, { id, type: 'Pump', ...attributes })

  test('notifications of a source reach the subscriber under the id of its own subscription', async () => {
    await register({})
    const id = await subscribe({ notification: { endpoint: { uri: receiver.url() }, format: 'keyValues' } })
    const [passed] = await passedOn(1)
    expect(passed!.notification.endpoint.uri).toMatch(/\/selvedge\/v1\/source-notifications\//)
    await make(there, 'urn:p:1', { flow: at(1) })
    await here.send('POST', `${api}/entities?local=true`, { id: 'urn:x:1', type: 'Valve', flow: at(1) })
    const [told] = await bodies(1)
    expect(told).toMatchObject({ subscriptionId: id, data: [{ id: 'urn:p:1', type: 'Pump', flow: 1 }] })
    await there.send('PATCH', `${api}/entities/urn:p:1/attrs`, { flow: at(2) })
    expect((await bodies(2))[1]!.data).toMatchObject([{ flow: 2 }])
  })

  test('a source with localOnly has a local subscription, which is deleted with the original', async () => {
    const registration = await register({ management: { localOnly: true } })
    await subscribe({})
    expect(await passedOn(1)).toMatchObject([{ localOnly: true }])
    await here.ask('DELETE', registration)
    await passedOn(0)
  })

  test('only claimed attributes are subscribed and notified', async () => {
    await register({
      information: [{ entities: [{ type: 'Pump', id: 'urn:p:2' }], propertyNames: ['flow'] }],
    })
    await subscribe({ watchedAttributes: ['flow', 'heat'], q: 'heat>3', throttling: 0.001 })
    await subscribe({ entities: [{ type: 'Valve' }] })
    const [passed] = await passedOn(1)
    expect(passed).toMatchObject({ entities: [{ id: 'urn:p:2', type: 'Pump' }], watchedAttributes: ['flow'] })
    expect(passed!.q).toBeUndefined()
    expect(passed!.notification.attributes).toEqual(['flow'])
    await make(here, 'urn:p:2', { heat: at(5) })
    await bodies(1)
    await make(there, 'urn:p:2', { flow: at(1), secret: at(2) })
    const [, told] = await bodies(2)
    expect(told!.data).toEqual([{ id: 'urn:p:2', type: 'Pump', flow: at(1) }])
    await here.send('PATCH', `${api}/entities/urn:p:2/attrs`, { heat: at(1) })
    await there.send('PATCH', `${api}/entities/urn:p:2/attrs`, { flow: at(3) })
    // The notification of 3 has arrived while the other attribute does not match.
    await vi.waitFor(async () => expect((await passedOn(1))[0]!.notification.timesSent).toBe(2))
    await here.send('PATCH', `${api}/entities/urn:p:2/attrs`, { heat: at(7) })
    await there.send('PATCH', `${api}/entities/urn:p:2/attrs`, { flow: at(4) })
    const all = await bodies(4)
    expect(all.flatMap(({ data }) => data.map((one) => one['flow'] ?? one['heat']))).toEqual([
      ...[at(5), at(1), at(7), at(4)],
    ])
  })

  test('changes and deletions of subscriptions and registrations are forwarded', async () => {
    const id = await subscribe({})
    const location = await register({})
    const [first] = await passedOn(1)
    await here.send('PATCH', `${api}/subscriptions/${id}`, { watchedAttributes: ['heat'] })
    await vi.waitFor(async () => {
      const [now, ...more] = await passedOn(1)
      expect(more).toEqual([])
      expect([now!.watchedAttributes, now!.id === first!.id]).toEqual([['heat'], false])
    })
    await here.send('PATCH', `${api}/subscriptions/${id}`, { isActive: false })
    await passedOn(0)
    await here.send('PATCH', `${api}/subscriptions/${id}`, { isActive: true })
    await passedOn(1)
    await here.ask('DELETE', location)
    await passedOn(0)
    await register({})
    await passedOn(1)
    await here.ask('DELETE', `${api}/subscriptions/${id}`)
    await passedOn(0)
  })

  test('many at once: all are created, and all are deleted with their registration', async () => {
    const ids = await Promise.all(Array.from({ length: 60 }, () => subscribe({})))
    const location = await register({})
    const count = async (): Promise<string | undefined> =>
      (await there.get(`${api}/subscriptions?count=true&limit=0`)).headers['ngsild-results-count']
    await vi.waitFor(async () => expect(await count()).toBe(String(ids.length)))
    await here.ask('DELETE', location)
    await vi.waitFor(async () => expect(await count()).toBe('0'))
    await Promise.all(ids.map((id) => here.ask('DELETE', `${api}/subscriptions/${id}`)))
  })

  test('localOnly and sources that do not offer it: nothing is forwarded', async () => {
    await register({ operations: ['retrieveOps'] })
    await subscribe({})
    await register({})
    await passedOn(1)
    await subscribe({ localOnly: true })
    await subscribe({})
    await passedOn(2)
  })

  test('deletions of entities are notified', async () => {
    await register({})
    await subscribe({ notificationTrigger: ['entityDeleted', 'attributeDeleted'] })
    await passedOn(1)
    await make(there, 'urn:p:3', { flow: at(1), heat: at(2) })
    await there.ask('DELETE', `${api}/entities/urn:p:3/attrs/heat`)
    await there.ask('DELETE', `${api}/entities/urn:p:3`)
    const [attribute, entity] = await bodies(2)
    expect(attribute!.data).toMatchObject([{ id: 'urn:p:3', flow: at(1), heat: at('urn:ngsi-ld:null') }])
    expect(entity!.data).toMatchObject([
      { id: 'urn:p:3', type: 'Pump', deletedAt: expect.any(String) as string },
    ])
  })

  test('circular registrations end', async () => {
    await register({})
    await register({ endpoint: urlOf(here) }, there)
    await subscribe({})
    await passedOn(1)
    await make(there, 'urn:p:4', { flow: at(1) })
    await make(here, 'urn:p:5', { flow: at(1) })
    await bodies(2)
    expect(await idsOf(here, 'subscriptions')).toHaveLength(1)
    const looped = await there.send(
      'POST',
      `${api}/subscriptions`,
      {
        type: 'Subscription',
        entities: [{ type: 'Pump' }],
        notification: { endpoint: { uri: receiver.url() } },
      },
      {
        Via: `1.1 ${((await there.get(`${api}/info/sourceIdentity`)).json() as { contextSourceAlias: string }).contextSourceAlias}`,
      },
    )
    expect(looped.status).toBe(508)
  })

  test('tenants: that of the registration at the source, that of the subscriber on the way back', async () => {
    const headers = { 'NGSILD-Tenant': 'plant' }
    await here.send('POST', `${api}/entities`, { id: 'urn:t:1', type: 'T' }, headers)
    await there.send('POST', `${api}/entities`, { id: 'urn:t:1', type: 'T' }, { 'NGSILD-Tenant': 'factory' })
    const registration = {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      endpoint: urlOf(there),
      tenant: 'factory',
    }
    await here.send('POST', `${api}/csourceRegistrations`, registration, headers)
    await subscribe({}, headers)
    await passedOn(1, 'factory')
    const body = { id: 'urn:p:6', type: 'Pump', flow: at(1) }
    await there.send('POST', `${api}/entities`, body, { 'NGSILD-Tenant': 'factory' })
    expect((await bodies(1))[0]!.data).toMatchObject([{ id: 'urn:p:6' }])
    expect(receiver.received[0]!.headers['ngsild-tenant']).toBe('plant')
  })

  test('a notification with an unknown token is 404', async () => {
    const body = { id: 'urn:n:1', type: 'Notification', subscriptionId: 'urn:s:1', data: [] }
    const reply = await here.send('POST', '/selvedge/v1/source-notifications/guessed', body)
    expect(reply.status).toBe(404)
    const guarded = await startHttpGateway({ token: 'secret' })
    const [open, closed] = [
      await guarded.send('POST', '/selvedge/v1/source-notifications/guessed', body),
      await guarded.get(`${api}/subscriptions`),
    ]
    await guarded.close()
    expect([open.status, closed.status]).toEqual([404, 401])
  })

  test('splitEntities: q is evaluated on the merged entity', async () => {
    await register({})
    await subscribe({ q: 'flow==1;heat==2', splitEntities: true, scopeQ: '/#' })
    const [passed] = await passedOn(1)
    expect([passed!.q, (passed as { scopeQ?: string }).scopeQ]).toEqual([undefined, undefined])
    const third = await startHttpGateway({ alias: 'third' })
    await third.send('POST', `${api}/entities`, { id: 'urn:p:9', type: 'Pump', heat: at(2) })
    await register({ endpoint: third.url, operations: ['retrieveOps'] })
    await make(there, 'urn:p:8', { flow: at(1), scope: '/plant' })
    await make(there, 'urn:p:9', { flow: at(1), scope: '/plant' })
    const [told, ...more] = await bodies(1)
    expect([told!.data, more]).toMatchObject([[{ id: 'urn:p:9', flow: at(1), heat: at(2) }], []])
    await third.close()
  })

  test('steps missed while a source or this gateway was down are done at the next start', async () => {
    await register({})
    const id = await subscribe({})
    await passedOn(1)
    await here.close()
    here = await startGatewayInside(folders[0]!, noPlugins)
    await make(there, 'urn:p:7', { flow: at(1) })
    await passedOn(1)
    await here.ask('DELETE', `${api}/subscriptions/${id}`)
    await passedOn(0)
  })

  test('a source that was unreachable receives the missed steps when it is back', async () => {
    setLimit('forwardingRetryMs', 100)
    const folder = mkdtempSync(join(tmpdir(), 'selvedge-near-'))
    const near = await startGatewayInside(folder, noPlugins)
    restoreLimits()
    await there.close()
    await register({}, near)
    const made = await near.send('POST', `${api}/subscriptions`, {
      type: 'Subscription',
      entities: [{ type: 'Pump' }],
      notification: { endpoint: { uri: receiver.url() } },
    })
    there = await startGatewayInside(folders[1]!, {
      ...noPlugins,
      SELVEDGE_HTTP_PORT: String(there.httpPort),
    })
    await passedOn(1)
    await there.close()
    await near.ask('DELETE', made.headers['location']!)
    there = await startGatewayInside(folders[1]!, {
      ...noPlugins,
      SELVEDGE_HTTP_PORT: String(there.httpPort),
    })
    await passedOn(0)
    await near.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test('a source that never returns does not delay others', async () => {
    setLimit('forwardingRetryMs', 100)
    const folder = mkdtempSync(join(tmpdir(), 'selvedge-near-'))
    const near = await startGatewayInside(folder, noPlugins)
    setLimit('forwardingAtOnce', 1)
    await there.close()
    try {
      await register({ endpoint: 'http://127.0.0.1:1' }, near)
      await register({}, near)
      await near.send('POST', `${api}/subscriptions`, {
        type: 'Subscription',
        entities: [{ type: 'Pump' }],
        notification: { endpoint: { uri: receiver.url() } },
      })
      there = await startGatewayInside(folders[1]!, {
        ...noPlugins,
        SELVEDGE_HTTP_PORT: String(there.httpPort),
      })
      const [passed] = await passedOn(1)
      await near.close()
      await there.ask('DELETE', `${api}/subscriptions/${passed!.id}`)
    } finally {
      restoreLimits()
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('deletions at a source that is unreachable for too long are dropped, so that they do not pile up', async () => {
    setLimit('forwardingRetryMs', 100)
    const folder = mkdtempSync(join(tmpdir(), 'selvedge-near-'))
    const near = await startGatewayInside(folder, noPlugins)
    await register({}, near)
    const made = await near.send('POST', `${api}/subscriptions`, {
      type: 'Subscription',
      entities: [{ type: 'Pump' }],
      notification: { endpoint: { uri: receiver.url() } },
    })
    const [passed] = await passedOn(1)
    await there.close()
    setLimit('forwardingLeavingMs', 200)
    try {
      await near.ask('DELETE', made.headers['location']!)
      await new Promise((resolve) => setTimeout(resolve, 1000))
      there = await startGatewayInside(folders[1]!, {
        ...noPlugins,
        SELVEDGE_HTTP_PORT: String(there.httpPort),
      })
      await new Promise((resolve) => setTimeout(resolve, 500))
      await passedOn(1)
      await near.close()
      await there.ask('DELETE', `${api}/subscriptions/${passed!.id}`)
    } finally {
      restoreLimits()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
