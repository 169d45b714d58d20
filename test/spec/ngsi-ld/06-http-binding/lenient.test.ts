/** Tolerated input, and headers common to all responses [NGSI-LD 6.3]. */
import { expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const root = '/ngsi-ld/v1'
const entities = `${root}/entities`
const idsOf = (json: unknown): unknown => (json as { id: string }[]).map(({ id }) => id)

it('a + in scopeQ may be sent without percent-encoding', async () => {
  const id = freshId('Scoped')
  await gateway.send('POST', entities, { id, type: 'Scoped', scope: '/a/x/b' })
  for (const scopeQ of ['/a/+/b', '/a/%2B/b', '/a/x/+', '/+/+/+', '/n;/n|/a/+/b', '/a/+/%23'])
    expect([scopeQ, idsOf((await gateway.get(`${entities}?type=Scoped&scopeQ=${scopeQ}`)).json())]).toEqual([
      scopeQ,
      [id],
    ])
  expect((await gateway.get(`${entities}?type=Scoped&scopeQ=/a/+/c`)).json()).toEqual([])
})

it('a query may select entities by ids alone', async () => {
  const [one, two] = [freshId('One'), freshId('Two')]
  await gateway.send('POST', entities, { id: one, type: 'One' })
  await gateway.send('POST', entities, { id: two, type: 'Two' })
  const found = await gateway.get(`${entities}?id=${one},${two},urn:x:none`)
  expect([found.status, idsOf(found.json())]).toEqual([200, [one, two]])
  expect((await gateway.get(`${entities}?idPattern=urn`)).status).toBe(400)
})

it('linked entities may be joined to the tenth level', async () => {
  const id = freshId('Self')
  await gateway.send('POST', entities, { id, type: 'Self', next: { object: id } })
  expect((await gateway.get(`${entities}/${id}?join=inline&joinLevel=10`)).status).toBe(200)
  expect((await gateway.get(`${entities}/${id}?join=inline&joinLevel=11`)).status).toBe(403)
})

it.each(['pick', 'omit'])('%s may not reach deeper than links are followed', async (name) => {
  const id = freshId('Deep')
  await gateway.send('POST', entities, { id, type: 'Deep', a: { object: id } })
  for (const path of [`${entities}/${id}?`, `${entities}?type=Deep&`]) {
    const at = (query: string) => gateway.get(`${path}${query}`).then(({ status }) => status)
    expect(await at(`${name}=a{b{c}}&join=inline&joinLevel=1`)).toBe(400)
    expect(await at(`${name}=a{b}`)).toBe(400)
    expect(await at(`${name}=a{b{c}}&join=flat`)).toBe(400)
  }
})

it.each(['id', 'type', 'a,type'])('attrs=%s names what is no attribute: 400', async (attrs) => {
  const id = freshId('Attrs')
  await gateway.send('POST', entities, { id, type: 'Attrs', a: property(1) })
  for (const path of [`${entities}/${id}?`, `${entities}?type=Attrs&`, `${root}/temporal/entities/${id}?`]) {
    const refused = await gateway.get(`${path}attrs=${attrs}`)
    expect([refused.status, refused.json()]).toMatchObject([
      400,
      { type: expect.stringMatching(/BadRequestData$/) },
    ])
  }
})

it('the link to the next page is the first link', async () => {
  const address = await hosted()
  for (let i = 0; i < 3; i++) await gateway.send('POST', entities, { id: freshId('Paged'), type: 'Paged' })
  const link = `<${gateway.url}${address}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`
  const page = await gateway.get(
    `${entities}?attrs=a&type=https://uri.etsi.org/ngsi-ld/default-context/Paged`,
  )
  expect(page.status).toBe(200)
  const { headers } = await gateway.get(`${entities}?type=Paged&limit=1`, { Link: link })
  expect(headers['link']).toMatch(/^<[^>]*limit=1[^>]*>;rel="next"/)
  expect(headers['link']).toContain('json-ld#context')
})

const hosted = async (): Promise<string> => {
  const body = { '@context': { room: 'https://x.example/room' } }
  const made = await gateway.send('POST', `${root}/jsonldContexts`, body)
  return made.headers['location']!
}

it('the Location of a hosted context may be used wherever a context is named', async () => {
  const address = await hosted()
  const id = freshId('Ctx')
  const body = { '@context': address, id, type: 'room' }
  const type = { 'Content-Type': 'application/ld+json' }
  expect((await gateway.send('POST', entities, body, type)).status).toBe(201)
  const link = {
    Link: `<${address}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`,
  }
  expect(idsOf((await gateway.get(`${entities}?type=room`, link)).json())).toEqual([id])
  const more = { id: freshId('Ctx'), type: 'room' }
  expect((await gateway.send('POST', entities, more, link)).status).toBe(201)
  const subscription = {
    type: 'Subscription',
    entities: [{ type: 'room' }],
    jsonldContext: address,
    notification: { endpoint: { uri: 'http://127.0.0.1:1/none' } },
  }
  const made = await gateway.send('POST', `${root}/subscriptions`, subscription, link)
  expect([made.status, made.text]).toEqual([201, ''])
})

it('every JSON response has Preference-Applied', async () => {
  const id = freshId('Pref')
  await gateway.send('POST', entities, { id, type: 'Pref', a: property(1) })
  const prefer = { Prefer: 'ngsi-ld=1.8' }
  const times = 'timerel=before&timeAt=2999-01-01T00:00:00Z'
  const paths = [
    ...[
      `entities/${id}`,
      'entities?type=Pref',
      `temporal/entities/${id}`,
      `temporal/entities?type=Pref&${times}`,
    ],
    ...[
      'types',
      'types?details=true',
      'types/Pref',
      'attributes',
      'subscriptions',
      'csourceRegistrations?type=P',
    ],
    ...['csourceSubscriptions', 'jsonldContexts', 'info/sourceIdentity'],
  ]
  for (const path of paths)
    for (const accept of ['application/json', 'application/ld+json']) {
      const { status, headers } = await gateway.get(`${root}/${path}`, { ...prefer, Accept: accept })
      expect([path, status, headers['preference-applied']]).toEqual([path, 200, 'ngsi-ld=1.8'])
    }
  const query = { type: 'Query', entities: [{ type: 'Pref' }] }
  const past = { ...query, temporalQ: { timerel: 'before', timeAt: '2999-01-01T00:00:00Z' } }
  for (const [path, body] of [
    ['entityOperations', query],
    ['temporal/entityOperations', past],
  ] as const) {
    const { headers } = await gateway.send('POST', `${root}/${path}/query`, body, prefer)
    expect([path, headers['preference-applied']]).toEqual([path, 'ngsi-ld=1.8'])
  }
  const batch = [{ id: freshId('Pref'), type: 'Pref' }]
  const made = await gateway.send('POST', `${root}/entityOperations/create`, batch, prefer)
  expect([made.status, made.headers['preference-applied']]).toEqual([201, 'ngsi-ld=1.8'])
})

it.each(['count=yes', 'local=1', 'limit=x', 'offset=-1', 'format=odd', 'join=odd', 'orderBy=', 'lang='])(
  'a wrong value is BadRequestData: %s',
  async (query) => {
    const refused = await gateway.get(`${entities}?type=T&${query}`)
    expect([refused.status, refused.json()]).toMatchObject([
      400,
      { type: expect.stringMatching(/BadRequestData$/) },
    ])
  },
)

it.each([
  ['2025-01-01T00:00:00.1234567Z', '2025-01-01T00:00:00.123456Z', true],
  ['2025-01-01T00:00:00.123000999+00:00', '2025-01-01T00:00:00.123Z', true],
  ['2025-01-01T00:00:00+00:00', '2025-01-01T00:00:00Z', false],
  ['2025-01-01T00:00:00.5+00:00', '2025-01-01T00:00:00.500Z', false],
])(
  'observedAt %s is stored as %s, with a warning if digits were dropped: %s',
  async (observedAt, kept, isCut) => {
    const id = freshId('Fine')
    const a = property(1, { observedAt })
    const batch = [{ id: `${id}:b`, type: 'Fine', a }]
    const answers = [
      await gateway.send('POST', entities, { id, type: 'Fine', a }),
      await gateway.send('PATCH', `${entities}/${id}`, { a }),
      await gateway.send('PATCH', `${entities}/${id}/attrs/a`, { value: 2, observedAt }),
      await gateway.send('POST', `${root}/entityOperations/upsert`, batch),
      await gateway.send('POST', `${root}/temporal/entities`, { id: `${id}:t`, type: 'Fine', a: [a] }),
    ]
    for (const { status, headers } of answers) {
      expect([201, 204]).toContain(status)
      expect(headers['ngsild-warning']).toEqual(isCut ? expect.stringMatching(/^299 - "/) : undefined)
    }
    for (const each of [id, `${id}:b`, `${id}:t`])
      expect((await gateway.get(`${entities}/${each}`)).json()).toMatchObject({ a: { observedAt: kept } })
  },
)

it.each(['2025-01-01T00:00:00.1234567890Z', '2025-01-01T00:00:00+01:00', '2025-01-01 00:00:00Z'])(
  'observedAt %s is refused',
  async (observedAt) => {
    const body = { id: freshId('Odd'), type: 'Odd', a: property(1, { observedAt }) }
    expect((await gateway.send('POST', entities, body)).status).toBe(400)
  },
)
