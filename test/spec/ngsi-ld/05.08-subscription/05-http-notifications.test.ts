/**
 * Headers, context and previous values of notifications over HTTP [NGSI-LD 5.2.12, 5.2.14, 5.8.1, 5.8.2,
 * 5.8.6, 6.3.5], against a whole gateway and a real receiver.
 */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { property } from '#test/kit/gateway-of-file.ts'
import { wholeGatewayOfFile } from '#test/kit/whole-gateway-of-file.ts'

const api = '/ngsi-ld/v1'
type Body = { readonly data: readonly Record<string, unknown>[] }

const gateway = wholeGatewayOfFile()
let last = 0
const send = async (method: string, path: string, body: unknown, headers = {}): Promise<void> => {
  const answer = await gateway.send(method, `${api}${path}`, body, headers)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
}
/** Subscribes to entities of a new type, makes a change, and returns the notification. */
async function told(
  members: { readonly notification?: object; readonly endpoint?: object; readonly [member: string]: unknown },
  happen: (type: string, id: string) => Promise<unknown>,
  headers = {},
) {
  const n = ++last
  const [type, path] = [`Kind${n}`, `/told/${n}`]
  const { notification, endpoint, before, ...rest } = members
  if (before !== undefined)
    await send('POST', '/entities', { id: `urn:x:${n}`, type, ...(before as object) }, headers)
  const body = {
    id: `urn:x:s:${n}`,
    type: 'Subscription',
    entities: [{ type }],
    ...rest,
    notification: { ...notification, endpoint: { uri: gateway.receiver.url(path), ...endpoint } },
  }
  await send('POST', '/subscriptions', body, headers)
  await happen(type, `urn:x:${n}`)
  const ours = () => gateway.receiver.received.filter((one) => one.path === path)
  await expect.poll(() => ours().length).toBeGreaterThan(0)
  const [first] = ours()
  return { headers: first!.headers, body: JSON.parse(first!.body) as Body & Record<string, unknown> }
}
const create =
  (attributes: object, headers = {}) =>
  (type: string, id: string): Promise<void> =>
    send('POST', '/entities', { id, type, ...attributes }, headers)

describe('a notification', () => {
  it('has its own id and time, the requested headers, and a Link to its @context', async () => {
    const receiverInfo = [{ key: 'X-Site', value: 'north' }]
    const { headers, body } = await told({ endpoint: { receiverInfo } }, create({ a: property(1) }))
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-site': 'north' })
    expect(headers['link']).toMatch(/^<http[^>]+>; rel="http:\/\/www\.w3\.org\/ns\/json-ld#context"; type=/)
    expect(headers).not.toHaveProperty('ngsild-tenant')
    expect(Object.keys(body)).toEqual(['id', 'type', 'subscriptionId', 'notifiedAt', 'data'])
    expect(body).toMatchObject({
      id: expect.stringMatching(/^urn:/),
      type: 'Notification',
      subscriptionId: `urn:x:s:${last}`,
      notifiedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      data: [{ id: `urn:x:${last}`, a: property(1) }],
    })
  })

  it('contains its @context if it is JSON-LD, and names the tenant', async () => {
    const tenant = { 'NGSILD-Tenant': 'elsewhere' }
    const { headers, body } = await told(
      { endpoint: { accept: 'application/ld+json' } },
      create({ a: property(1) }, tenant),
      tenant,
    )
    expect(headers).toMatchObject({ 'content-type': 'application/ld+json', 'ngsild-tenant': 'elsewhere' })
    expect(headers).not.toHaveProperty('link')
    expect(body.data[0]).toHaveProperty('@context')
  })

  it('uses the terms of a long @context of its subscription from the first one on', async () => {
    const many = Array.from({ length: 1200 }, (_, i) => [`t${i}`, `https://a.example/t${i}`] as const)
    const { body } = await told(
      { '@context': Object.fromEntries([...many, ['warmth', 'https://a.example/temp']]) },
      create({ 'https://a.example/temp': property(1) }),
      { 'Content-Type': 'application/ld+json' },
    )
    expect(body.data[0]).toHaveProperty('warmth', property(1))
  })

  it('uses the terms of jsonldContext, which must be available and valid', async () => {
    const made = await gateway.send('POST', `${api}/jsonldContexts`, {
      '@context': { warmth: 'https://a.example/temp' },
    })
    const jsonldContext = `http://127.0.0.1:${gateway.httpPort}${made.headers['location']!}`
    const attributes = { 'https://a.example/temp': property(1) }
    const { headers, body } = await told({ jsonldContext }, create(attributes))
    expect(headers['link']).toContain(jsonldContext)
    expect(body.data[0]).toHaveProperty('warmth', property(1))
    const refused = async (url: string): Promise<number> => {
      const notification = { endpoint: { uri: gateway.receiver.url() } }
      const of = { type: 'Subscription', entities: [{ type: 'T' }], notification }
      const answers = [
        await gateway.send('POST', `${api}/subscriptions`, { ...of, jsonldContext: url }),
        await gateway.send('PATCH', `${api}/subscriptions/urn:x:s:${last}`, { jsonldContext: url }),
      ]
      expect(answers[0]!.status).toBe(answers[1]!.status)
      return answers[0]!.status
    }
    expect(await refused('http://127.0.0.1:9/none.jsonld')).toBe(504)
    gateway.receiver.answer(() => 200)
    expect(await refused(gateway.receiver.url('/no-context'))).toBe(400)
    expect(await refused('none.jsonld')).toBe(400)
  })
})

describe('showChanges', () => {
  const list = (...objects: string[]) => objects.map((object) => ({ object }))
  it.each([
    ['Property', 'value', 1, 2],
    ['GeoProperty', 'value', { type: 'Point', coordinates: [1, 1] }, { type: 'Point', coordinates: [2, 2] }],
    ['Relationship', 'object', 'urn:y:1', 'urn:y:2'],
    ['LanguageProperty', 'languageMap', { en: 'a' }, { en: 'b' }],
    ['VocabProperty', 'vocab', 'open', 'shut'],
    ['JsonProperty', 'json', { a: 1 }, { a: 2 }],
    ['ListProperty', 'valueList', [1], [2]],
    ['ListRelationship', 'objectList', list('urn:y:1'), list('urn:y:2')],
  ])('reports the previous value of a %s', async (type, member, before, after) => {
    const members = { before: { a: { type, [member]: before } }, notification: { showChanges: true } }
    const { body } = await told(members, (_, id) =>
      send('PATCH', `/entities/${id}/attrs`, { a: { type, [member]: after } }),
    )
    const previous = `previous${member[0]!.toUpperCase()}${member.slice(1)}`
    expect(body.data[0]!['a']).toEqual({ type, [member]: after, [previous]: before })
  })
})

describe('a batch', () => {
  it('is split into several notifications if one would be too large, each counted', async () => {
    const uri = gateway.receiver.url('/large')
    await send('POST', '/subscriptions', {
      id: 'urn:x:s:large',
      type: 'Subscription',
      entities: [{ type: 'Large' }],
      notification: { endpoint: { uri } },
    })
    const ids = Array.from({ length: 8 }, (_, i) => `urn:x:large:${i}`)
    const text = property('x'.repeat(limits.notificationBytes.value / 3))
    await send(
      'POST',
      '/entityOperations/create',
      ids.map((id) => ({ id, type: 'Large', text })),
    )
    const sent = () => gateway.receiver.received.filter(({ path }) => path === '/large')
    const idsOf = ({ body }: { body: string }) => (JSON.parse(body) as Body).data.map(({ id }) => String(id))
    await expect.poll(() => sent().flatMap(idsOf).toSorted()).toEqual(ids)
    const most = limits.notificationBytes.value + 1024
    expect(sent().every(({ body }) => body.length < most)).toBe(true)
    expect(sent().length).toBeGreaterThan(1)
    await expect
      .poll(async () => (await gateway.get(`${api}/subscriptions/urn:x:s:large`)).json())
      .toMatchObject({ notification: { timesSent: sent().length } })
  })

  it('contains every matching entity of a batch', async () => {
    const uri = gateway.receiver.url('/batch')
    const of = (round: number, i: number) => ({
      id: `urn:x:b:${round}:${i}`,
      type: 'OfBatch',
      a: property(i),
    })
    await send('POST', '/subscriptions', {
      id: 'urn:x:s:batch',
      type: 'Subscription',
      entities: [{ type: 'OfBatch' }],
      q: 'a>0',
      notificationTrigger: ['entityCreated'],
      notification: { endpoint: { uri } },
    })
    const reported = () =>
      gateway.receiver.received
        .filter(({ path }) => path === '/batch')
        .map(({ body }) => (JSON.parse(body) as Body).data.map(({ id }) => id))
    // On a very busy machine a batch may be committed in two parts, each with its notification.
    for (let round = 0; !reported().some((ids) => ids.length === 3); round++) {
      expect(round).toBeLessThan(10)
      await send(
        'POST',
        '/entityOperations/create',
        [0, 1, 2, 3].map((i) => of(round, i)),
      )
      await expect.poll(() => reported().flat()).toEqual(expect.arrayContaining([of(round, 3).id]))
    }
    expect(
      reported()
        .flat()
        .some((id) => String(id).endsWith(':0')),
    ).toBe(false)
  })
})

describe('a subscription', () => {
  it('shows the address of the @context of its notifications', async () => {
    const subscription = { type: 'Subscription', entities: [{ type: 'Named' }] }
    const notification = { endpoint: { uri: gateway.receiver.url('/named') } }
    const own = { warmth: 'https://a.example/temp' }
    const made = await gateway.send('POST', `${api}/jsonldContexts`, { '@context': own })
    const address = `http://127.0.0.1:${gateway.httpPort}${made.headers['location']!}`
    const link = {
      Link: `<${address}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`,
    }
    await send('POST', '/subscriptions', { id: 'urn:x:s:link', ...subscription, notification }, link)
    const shown = await gateway.ask('GET', `${api}/subscriptions/urn:x:s:link`)
    expect(JSON.parse(shown.text)).toMatchObject({ jsonldContext: address })
    await send('POST', '/entities', { id: 'urn:x:named', type: 'Named', warmth: property(1) }, link)
    const sent = () => gateway.receiver.received.filter(({ path }) => path === '/named')
    await expect.poll(() => sent().length).toBe(1)
    expect(sent()[0]!.headers['link']).toContain(address)
    expect((JSON.parse(sent()[0]!.body) as Body).data[0]).toHaveProperty('warmth')
  })
})

describe('a deleted attribute', () => {
  it.each([
    ['normalized', {}, property('urn:ngsi-ld:null')],
    ['concise', {}, 'urn:ngsi-ld:null'],
    ['concise', { showChanges: true }, { value: 'urn:ngsi-ld:null', previousValue: 1 }],
    ['simplified', {}, 'urn:ngsi-ld:null'],
  ])('is NGSI-LD Null in the %s form with %j', async (format, more, expected) => {
    const members = { before: { a: property(1), b: property(2) }, notificationTrigger: ['attributeDeleted'] }
    const { body } = await told({ ...members, notification: { format, ...more } }, (_, id) =>
      gateway.ask('DELETE', `${api}/entities/${id}/attrs/a`),
    )
    expect(body.data[0]!['a']).toEqual(expected)
  })
})
