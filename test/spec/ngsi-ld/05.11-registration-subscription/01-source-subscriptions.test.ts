/**
 * Subscriptions to registrations of context sources against a whole gateway: who is notified of which
 * registration, and why.
 */
import { describe, expect, test, vi } from 'vitest'
import { wholeGatewayOfFile } from '#test/kit/whole-gateway-of-file.ts'

const registrations = '/ngsi-ld/v1/csourceRegistrations'
const subscriptions = '/ngsi-ld/v1/csourceSubscriptions'

describe('GS CIM 009, 5.11: subscriptions to registrations of context sources', () => {
  const gateway = wholeGatewayOfFile()

  const register = (id: string, types: readonly string[]) =>
    gateway.send('POST', registrations, {
      id,
      type: 'ContextSourceRegistration',
      information: types.map((type) => ({ entities: [{ type }] })),
      endpoint: 'http://source.example',
    })
  const subscribe = (id: string, members: object) =>
    gateway.send('POST', subscriptions, {
      id,
      type: 'Subscription',
      notification: { endpoint: { uri: gateway.receiver.url() } },
      ...members,
    })
  interface Told {
    readonly type: string
    readonly triggerReason: string
    readonly data: readonly { readonly id: string; readonly information: unknown }[]
  }
  const toldTo = (id: string) =>
    gateway.receiver
      .taken()
      .map(({ body }) => JSON.parse(body) as Told & { subscriptionId: string })
      .filter(({ subscriptionId }) => subscriptionId === id)
      .map(({ type, triggerReason, data }) => [type, triggerReason, data.map((one) => one.id)])

  test('notify current matches, then registrations that are added, changed or removed, across a restart', async () => {
    expect((await register('urn:r:1', ['Pump', 'Valve'])).status).toBe(201)
    expect((await subscribe('urn:s:1', { entities: [{ type: 'Pump' }] })).status).toBe(201)
    expect((await register('urn:r:2', ['Lamp'])).status).toBe(201)
    await gateway.restart()
    expect((await register('urn:r:3', ['Pump'])).status).toBe(201)
    const information = [{ entities: [{ type: 'Lamp' }] }]
    expect((await gateway.send('PATCH', `${registrations}/urn:r:3`, { registrationName: 'x' })).status).toBe(
      204,
    )
    expect((await gateway.send('PATCH', `${registrations}/urn:r:3`, { information })).status).toBe(204)
    expect((await gateway.ask('DELETE', `${registrations}/urn:r:1`)).status).toBe(204)
    await vi.waitFor(() => expect(toldTo('urn:s:1')).toHaveLength(5))
    const kind = 'ContextSourceNotification'
    expect(toldTo('urn:s:1')).toEqual([
      [kind, 'newlyMatching', ['urn:r:1']],
      [kind, 'newlyMatching', ['urn:r:3']],
      [kind, 'updated', ['urn:r:3']],
      [kind, 'noLongerMatching', ['urn:r:3']],
      [kind, 'noLongerMatching', ['urn:r:1']],
    ])
    const [first] = gateway.receiver.taken().map(({ body }) => JSON.parse(body) as Told)
    expect(first!.data[0]!.information).toEqual([{ entities: [{ type: 'Pump' }] }])
    const shown = (await gateway.get(`${subscriptions}/urn:s:1`)).json() as { notification: object }
    expect(shown.notification).toMatchObject({ status: 'ok', timesSent: 5 })
  })

  test('with an interval notify all matches repeatedly', async () => {
    await subscribe('urn:s:2', { entities: [{ type: 'Lamp' }], timeInterval: 1 })
    await vi.waitFor(() => expect(toldTo('urn:s:2').length).toBeGreaterThan(1))
    expect(toldTo('urn:s:2').at(-1)![2]).toEqual(['urn:r:2', 'urn:r:3'])
    expect((await gateway.ask('DELETE', `${subscriptions}/urn:s:2`)).status).toBe(204)
    expect((await gateway.get(`${subscriptions}/urn:s:2`)).status).toBe(404)
  })

  test('that are paused receive nothing; filters and times are read back as written', async () => {
    const temporalQ = { timerel: 'after', timeAt: '2020-06-01T22:07:00Z', timeproperty: 'observedAt' }
    const members = { entities: [{ type: 'Pump' }], isActive: false, csf: 'hall==7', temporalQ }
    const nothing = 'urn:ngsi-ld:null'
    expect((await subscribe('urn:s:3', members)).status).toBe(201)
    expect((await gateway.get(`${subscriptions}/urn:s:3`)).json()).toMatchObject({
      ...members,
      status: 'paused',
    })
    expect((await subscribe('urn:s:3', members)).status).toBe(409)
    expect((await gateway.send('PATCH', `${subscriptions}/urn:s:3`, { csf: null })).status).toBe(400)
    expect((await subscribe('urn:s:nothing', { ...members, csf: nothing })).status).toBe(400)
    expect((await gateway.send('PATCH', `${subscriptions}/urn:s:3`, { csf: nothing })).status).toBe(204)
    expect((await gateway.get(`${subscriptions}/urn:s:3`)).json()).not.toHaveProperty('csf')
    expect(toldTo('urn:s:3')).toEqual([])
  })

  test('with throttling notify at most one change in that time; members about entities are rejected', async () => {
    const endpoint = { uri: gateway.receiver.url() }
    expect((await subscribe('urn:s:4', { entities: [{ type: 'Fan' }], throttling: 60 })).status).toBe(201)
    await register('urn:r:fan1', ['Fan'])
    await register('urn:r:fan2', ['Fan'])
    await subscribe('urn:s:5', { entities: [{ type: 'Fan' }] })
    await vi.waitFor(() => expect(toldTo('urn:s:5')).toHaveLength(1))
    expect(toldTo('urn:s:4')).toEqual([['ContextSourceNotification', 'newlyMatching', ['urn:r:fan1']]])
    const showing = { entities: [{ type: 'Fan' }], notification: { endpoint, showChanges: true } }
    expect((await subscribe('urn:s:6', showing)).status).toBe(422)
    expect((await subscribe('urn:s:6', { entities: [{ type: 'Fan' }], datasetId: 'urn:d:1' })).status).toBe(
      422,
    )
  })

  test('with attributes to receive are notified of sources of these attributes', async () => {
    const oven = (id: string, propertyNames: string[]) => ({
      id,
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Oven' }], propertyNames }],
      endpoint: 'http://source.example',
    })
    const notification = { attributes: ['heat'], endpoint: { uri: gateway.receiver.url() } }
    expect((await subscribe('urn:s:8', { entities: [{ type: 'Oven' }], notification })).status).toBe(201)
    await gateway.send('POST', registrations, oven('urn:r:smoke', ['smoke']))
    await gateway.send('POST', registrations, oven('urn:r:heat', ['heat']))
    await vi.waitFor(() => expect(toldTo('urn:s:8')).toHaveLength(1))
    expect(toldTo('urn:s:8')).toEqual([['ContextSourceNotification', 'newlyMatching', ['urn:r:heat']]])
  })

  test('have a context that can be retrieved and referenced, as other subscriptions do', async () => {
    const entities = [{ type: 'Fan' }]
    const none = 'http://127.0.0.1:1/none.jsonld'
    expect((await subscribe('urn:s:10', { entities, jsonldContext: none })).status).toBe(504)
    expect((await subscribe('urn:s:10', { entities, '@context': { Fan: 'http://x.org/Fan' } })).status).toBe(
      201,
    )
    const shown: { jsonldContext: string } = (await gateway.get(`${subscriptions}/urn:s:10`)).json()
    expect(shown.jsonldContext).toMatch(/\/ngsi-ld\/v1\/jsonldContexts\//)
    const geo = { endpoint: { uri: gateway.receiver.url(), accept: 'application/geo+json' } }
    expect((await subscribe('urn:s:11', { entities, notification: geo })).status).toBe(400)
  })

  test('are notified of a registration that has expired', async () => {
    const expiresAt = new Date(Date.now() + 1200).toISOString()
    await gateway.send('POST', registrations, {
      id: 'urn:r:brief',
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Comet' }] }],
      endpoint: 'http://source.example',
      expiresAt,
    })
    expect((await subscribe('urn:s:9', { entities: [{ type: 'Comet' }] })).status).toBe(201)
    await vi.waitFor(() => expect(toldTo('urn:s:9')).toHaveLength(2))
    expect(toldTo('urn:s:9').map(([, reason]) => reason)).toEqual(['newlyMatching', 'noLongerMatching'])
    expect((await gateway.get(`${registrations}/urn:r:brief`)).status).toBe(404)
  })

  test('that were changed are notified of all current matches', async () => {
    await register('urn:r:door', ['Door'])
    await subscribe('urn:s:7', { entities: [{ type: 'Window' }] })
    const changed = await gateway.send('PATCH', `${subscriptions}/urn:s:7`, { entities: [{ type: 'Door' }] })
    expect(changed.status).toBe(204)
    await vi.waitFor(() => expect(toldTo('urn:s:7')).toHaveLength(1))
    expect(toldTo('urn:s:7')).toEqual([['ContextSourceNotification', 'newlyMatching', ['urn:r:door']]])
  })
})
