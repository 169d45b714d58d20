/**
 * Forwarded requests use full names in every parameter with names, because no context is sent. Merged
 * responses have all warnings, and a count only within the limit.
 */
import { afterEach, describe, expect, it } from 'vitest'
import type { BrokerPort } from '#contract'
import { compilePlatformContext } from '#ngsi-ld/context/platform-context.ts'
import { textWithDerived } from '#plugins/indexing/entries/deduced.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { requestAll, retrieveFromFirst, writtenOut } from './forwarding.ts'
import { parseRequest } from './index-query.ts'

const context = compilePlatformContext('http://a.example/platform.jsonld')
const known = { isName: () => true, hasBare: () => false }
const qoi = 'https://w3id.org/iot/qoi#'

it.each([
  ['orderBy', 'qoi:completeness;desc,id', `${qoi}completeness;desc,id`],
  ['csf', 'qoi:completeness==1', `${qoi}completeness==1`],
  ['attrs', 'qoi:completeness, qoi:age', `${qoi}completeness,${qoi}age`],
  ['geometryProperty', 'qoi:place', `${qoi}place`],
  ['expandValues', 'qoi:a,qoi:b', `${qoi}a,${qoi}b`],
  ['options', 'sysAttrs,count', 'sysAttrs'],
  ['lang', 'de', 'de'],
])('%s=%s', (name, value, expected) => {
  const parameters = new Map([
    ['type', 'iot-stream:IotStream'],
    [name, value],
  ])
  const { criteria } = parseRequest(parameters, context, known)
  const written = writtenOut(parameters, criteria, context.expand)
  expect(written.get(name)).toBe(expected)
  expect(written.get('type')).toBe('http://purl.org/iot/ontology/iot-stream#IotStream')
})

afterEach(restoreLimits)

/** A broker with this many entities, optionally with a warning. */
const brokerOf = (address: string, entities: number, warning?: string): BrokerPort => ({
  address,
  async exchange({ path }) {
    const { searchParams } = new URL(path, address)
    const [offset, limit] = ['offset', 'limit'].map((name) => Number(searchParams.get(name)))
    const all = Array.from({ length: entities }, (_, i) => ({ id: `${address}/${i}`, type: 'T' }))
    return {
      status: 200,
      headers: warning === undefined ? {} : { 'ngsild-warning': warning },
      text: JSON.stringify(all.slice(offset, offset! + limit!)),
    }
  },
})
const { signal } = new AbortController()
const query = (brokers: readonly BrokerPort[], count: boolean) =>
  requestAll(brokers, {
    parameters: new URLSearchParams('type=T'),
    headers: {},
    signal,
    paging: { limit: 2, offset: 0, count },
  })

it('returns the warnings of all brokers', async () => {
  const brokers = [
    brokerOf('http://a', 3, '111 a "one"'),
    brokerOf('http://b', 1),
    brokerOf('http://c', 1, '111 c "x"'),
  ]
  expect((await query(brokers, true)).warnings).toEqual(['111 a "one"', '111 c "x"'])
  const { warnings } = await retrieveFromFirst(brokers, '/ngsi-ld/v1/entities/x?offset=0&limit=1', {
    headers: {},
    signal,
  })
  expect(warnings).toEqual(['111 a "one"'])
})

it('rejects a count above the limit', async () => {
  setLimit('indexForwardEntities', 3)
  const brokers = [brokerOf('http://a', 3), brokerOf('http://b', 2)]
  expect((await query(brokers, true)).count).toBe('5')
  const more = [...brokers, brokerOf('http://c', 4)]
  await expect(query(more, true)).rejects.toMatchObject({ code: 'ngsi-ld.too-many-results' })
  expect(JSON.parse((await query(more, false)).text)).toHaveLength(2)
})

describe('with brokers that limit pages by bytes', () => {
  /** Returns one entity per page, whatever limit is requested. */
  const cutting: BrokerPort = {
    address: 'http://cutting',
    async exchange({ path }) {
      const offset = Number(new URL(path, 'http://cutting').searchParams.get('offset'))
      const headers: Record<string, string> = offset < 2 ? { link: '</x?offset=1>;rel="next"' } : {}
      return {
        status: 200,
        headers,
        text: JSON.stringify(offset < 3 ? [{ id: `c${offset}`, type: 'T' }] : []),
      }
    },
  }

  /** Returns two entities per page and continues by a key. */
  const keyed = (total: number, more: (path: string) => object = () => ({})): BrokerPort => ({
    address: 'http://keyed',
    async exchange({ path }) {
      const { searchParams } = new URL(path, 'http://keyed')
      const [limit, offset] = ['limit', 'offset'].map((name) => Number(searchParams.get(name)))
      const from = Number(searchParams.get('pageKey') ?? offset)
      const to = Math.min(from + Math.min(limit!, 2), total)
      const items = Array.from({ length: to - from }, (_, i) => ({ id: `k${from + i}`, type: 'T' }))
      const link = `</ngsi-ld/v1/entities?type=T&limit=${limit}&offset=9&pageKey=${to}>;rel="next";type="x", </c>; rel="y"`
      return {
        status: 200,
        headers: to < total ? { link } : {},
        text: JSON.stringify(items),
        ...more(path),
      }
    },
  })
  const page = async (broker: BrokerPort, limit: number, offset: number) => {
    const { text } = await requestAll([broker], {
      parameters: new URLSearchParams('type=T'),
      headers: {},
      signal,
      paging: { limit, offset, count: false },
    })
    return (JSON.parse(text) as { id: string }[]).map(({ id }) => id)
  }

  it('fills a page from one broker, so that paging by offset misses no entity', async () => {
    expect(await page(keyed(9), 5, 0)).toEqual(['k0', 'k1', 'k2', 'k3', 'k4'])
    expect(await page(keyed(9), 5, 5)).toEqual(['k5', 'k6', 'k7', 'k8'])
    expect(await page(keyed(9), 2, 2)).toEqual(['k2', 'k3'])
  })

  it('fills a feature collection and keeps its other members', async () => {
    const { text } = await requestAll(
      [
        keyed(3, (path) => {
          const features = path.includes('pageKey') ? [{ id: 'k2' }] : [{ id: 'k0' }, { id: 'k1' }]
          return { text: JSON.stringify({ type: 'FeatureCollection', features, '@context': 'c' }) }
        }),
      ],
      {
        parameters: new URLSearchParams('type=T'),
        headers: {},
        signal,
        paging: { limit: 3, offset: 0, count: false },
      },
    )
    expect(JSON.parse(text)).toEqual({
      type: 'FeatureCollection',
      features: [{ id: 'k0' }, { id: 'k1' }, { id: 'k2' }],
      '@context': 'c',
    })
  })

  it('returns no partial page if the rest is refused or too long', async () => {
    const failing = keyed(9, (path) => (path.includes('pageKey') ? { status: 500, text: '{}' } : {}))
    await expect(page(failing, 5, 0)).rejects.toMatchObject({ code: 'peer.refused' })
    setLimit('indexForwardCharacters', 30)
    await expect(page(keyed(9), 5, 0)).rejects.toMatchObject({ code: 'ngsi-ld.too-many-results' })
  })

  it('follows the next links of brokers', async () => {
    expect((await query([cutting, brokerOf('http://b', 2)], true)).count).toBe('5')
  })

  it('rejects merged responses above the character limit', async () => {
    setLimit('indexForwardCharacters', 30)
    await expect(query([cutting, brokerOf('http://b', 2)], true)).rejects.toMatchObject({
      code: 'ngsi-ld.too-many-results',
    })
  })
})

it('passes on a response that is not JSON', async () => {
  const text = '<html>hello</html>'
  expect(await textWithDerived(text, { deduce: () => new Map(), format: 'normalized' })).toBe(text)
})

describe('with brokers that fail', () => {
  const away = (failure: 'unreachable' | 'timeout' | 'oversized', address = 'http://away'): BrokerPort => ({
    address,
    exchange: async () => ({ failure, reason: 'so it is' }),
  })
  const answering = (status: number, text: string, address = 'http://odd'): BrokerPort => ({
    address,
    exchange: async () => ({ status, text, headers: {} }),
  })
  const one = brokerOf('http://a', 1)

  it.each([
    [away('unreachable'), 'cannot be reached: so it is'],
    [away('timeout'), 'gave no answer within'],
    [away('oversized'), 'so it is'],
    [answering(400, '{}'), 'it answered 400'],
    [answering(200, '<html>'), 'answered with invalid JSON'],
    [answering(200, '{"no":"list"}'), 'did not answer with a list of entities'],
  ])('%o is left out with a warning', async (broker, reason) => {
    const { text, by, warnings } = await query([one, broker], false)
    expect([JSON.parse(text), by]).toMatchObject([[{ id: 'http://a/0' }], ['http://a']])
    expect(warnings).toEqual([expect.stringMatching(/^199 selvedge "http:..(away|odd) is left out: /)])
    expect(warnings.join()).toContain(reason)
  })

  it('if all fail, reports the error of the first one', async () => {
    const refused = await query([answering(400, '{"title":"no"}'), away('timeout')], false)
    expect([refused.status, refused.text]).toEqual([400, '{"title":"no"}'])
    await expect(query([away('timeout')], false)).rejects.toMatchObject({ code: 'peer.timeout' })
    await expect(query([away('oversized'), away('timeout')], false)).rejects.toMatchObject({
      code: 'peer.refused',
    })
    await expect(query([], false)).rejects.toMatchObject({ code: 'peer.unavailable' })
  })

  it('limits the depth of paging over several brokers', async () => {
    setLimit('indexForwardEntities', 1)
    await expect(query([one, one], false)).rejects.toMatchObject({ code: 'ngsi-ld.too-many-results' })
  })

  it('retrieves a single entity from the first broker that has it', async () => {
    const request = { headers: {}, signal }
    const none = answering(404, '{}')
    const found = await retrieveFromFirst([away('unreachable'), none, one], '/x?offset=0&limit=1', request)
    expect([found.status, found.by, found.warnings]).toEqual([
      200,
      ['http://a'],
      [expect.stringContaining('http://away cannot be reached')],
    ])
    expect((await retrieveFromFirst([none, away('timeout')], '/x', request)).status).toBe(404)
    const silent = retrieveFromFirst([away('timeout'), away('timeout')], '/x', request)
    await expect(silent).rejects.toMatchObject({ code: 'peer.unavailable' })
    await expect(retrieveFromFirst([away('timeout')], '/x', request)).rejects.toMatchObject({
      code: 'peer.timeout',
    })
  })
})
