/**
 * Contexts over a real database file and door, with documents from a table instead of the network: fetching,
 * sharing, caching, and behaviour without network.
 */
import { afterEach, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { createLog } from '#base/register/log.ts'
import type { FetchDocument } from '#broker/contexts/context-library.ts'
import { createContexts, platformContextPath } from '#broker/contexts/context-resolver.ts'
import type { Json } from '#contract'
import type { Context } from '#ngsi-ld/context/context.ts'
import { profiles } from '#ngsi-ld/values/profile.ts'
import { createRecords } from '#store/tables/records.ts'
import { openDoor, temporaryDatabase } from '#test/kit/door.ts'

const closing: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const vehicle = { '@context': { Vehicle: 'https://a.example/Vehicle', speed: 'https://a.example/speed' } }

interface Web {
  readonly documents: Record<string, Json | string>
  readonly headers: Record<string, string>
  readonly asked: string[]
}

function newFile(): string {
  const { file, remove } = temporaryDatabase()
  closing.push(remove)
  return file
}

async function site(web: Web, file = newFile(), hosted = (): Json | undefined => undefined) {
  const { door, database, close } = await openDoor(file, { lingerMs: 0 })
  closing.push(close)
  const time = { now: 1_700_000_000_000, monotonic: 0 }
  const fetchDocument: FetchDocument = async ({ url }) => {
    web.asked.push(url)
    await new Promise((resolve) => setTimeout(resolve, 5))
    const document = web.documents[url]
    if (document === undefined) throw new GatewayError('peer.unavailable', `${url} answered 404`)
    const text = typeof document === 'string' ? document : JSON.stringify(document)
    return { headers: web.headers, body: Buffer.from(text) }
  }
  const warnings: string[] = []
  const clock = { now: () => time.now, monotonic: () => time.monotonic }
  const write = (line: string): void => {
    warnings.push((JSON.parse(line) as { event: string }).event)
  }
  const contexts = createContexts(
    {
      records: createRecords(database),
      door,
      hosted,
      fetchDocument,
      clock,
      log: createLog({ level: 'warn', clock, write }),
    },
    profiles['1.9'],
  )
  return { contexts, time, file, warnings, database }
}

const web = (documents: Web['documents'], headers: Web['headers'] = {}): Web => ({
  documents,
  headers,
  asked: [],
})
const a = 'https://a.example/context.jsonld'
const b = 'https://b.example/context.jsonld'

describe('a cached context', () => {
  it('is returned synchronously and without network access', async () => {
    const net = web({})
    const { contexts } = await site(net)
    expect(contexts.resolve('https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.3.jsonld')).toBe(
      contexts.core,
    )
    const inline = contexts.resolve([{ sosa: 'http://www.w3.org/ns/sosa/' }]) as Context
    expect(inline.expand('sosa:Sensor')).toBe('http://www.w3.org/ns/sosa/Sensor')
    expect(contexts.resolve([{ sosa: 'http://www.w3.org/ns/sosa/' }])).toBe(inline)
    expect(net.asked).toEqual([])
  })

  it("is the platform's own for any host", async () => {
    const { contexts } = await site(web({}))
    const context = contexts.resolve(`http://gateway.local:9090${platformContextPath}`) as Context
    expect(context.expand('IotStream')).toBe('http://purl.org/iot/ontology/iot-stream#IotStream')
    expect(context.compact('http://www.w3.org/ns/sosa/isHostedBy')).toBe('isHostedBy')
    expect(context.compact('http://purl.org/iot/ontology/iot-stream#observes')).toBe('iot-stream:observes')
    expect(context.expand('location')).toBe('location')
  })
})

describe('a context of many terms', () => {
  const terms = (count: number): Json =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, `https://a.example/terms#t${i}`]))

  it('is compiled in several turns of the event loop', async () => {
    const { contexts } = await site(web({}))
    const turnBefore = performance.nodeTiming.uvMetricsInfo.loopCount
    const context = await contexts.resolve([terms(10_000)])
    expect(performance.nodeTiming.uvMetricsInfo.loopCount - turnBefore).toBeGreaterThanOrEqual(2)
    expect(context.expand('t9999')).toBe('https://a.example/terms#t9999')
    expect(context.compact('https://a.example/terms#t5000')).toBe('t5000')
  })

  it('is compiled once for requests at the same time', async () => {
    const { contexts } = await site(web({ [a]: { '@context': terms(2000) } }))
    const results = await Promise.all(Array.from({ length: 3 }, () => contexts.resolve(a)))
    expect(new Set(results).size).toBe(1)
  })

  it('is compiled at once for a notification', async () => {
    const { contexts } = await site(web({ [a]: { '@context': terms(2000) } }))
    expect(contexts.resolveAtOnce([terms(2000)], '')?.expand('t9')).toBe('https://a.example/terms#t9')
    expect(contexts.resolveAtOnce(a, '')).toBeUndefined()
    expect(contexts.resolveAtOnce(a, '')).toBeUndefined()
    await expect.poll(() => contexts.resolveAtOnce(a, '')?.expand('t9')).toBe('https://a.example/terms#t9')
  })

  it('is not kept if a document was replaced while it was compiled', async () => {
    const hosted = {
      current: { '@context': { ...(terms(1500) as object), x: 'https://a.example/old' } } as Json,
    }
    const { contexts } = await site(web({}), newFile(), () => hosted.current)
    const url = 'http://gateway.local/ngsi-ld/v1/jsonldContexts/one'
    const before = contexts.resolve(url)
    expect(before).toBeInstanceOf(Promise)
    await new Promise((resolve) => setImmediate(resolve))
    hosted.current = { '@context': { x: 'https://a.example/new' } }
    contexts.dropped('one')
    await before
    expect((await contexts.resolve(url)).expand('x')).toBe('https://a.example/new')
  })
})

describe('a remote context', () => {
  it('is fetched once for concurrent requests, then returned synchronously', async () => {
    const net = web({ [a]: vehicle })
    const { contexts } = await site(net)
    const [one, two] = await Promise.all([contexts.resolve(a), contexts.resolve([a])])
    expect(net.asked).toEqual([a])
    expect(one.expand('speed')).toBe('https://a.example/speed')
    expect(two.expand('speed')).toBe('https://a.example/speed')
    expect(contexts.resolve(a)).not.toBeInstanceOf(Promise)
  })

  it('may refer to others, also by relative addresses', async () => {
    const net = web({
      [a]: { '@context': ['more.jsonld', { x: 'https://a.example/x' }] },
      'https://a.example/more.jsonld': vehicle,
    })
    const { contexts } = await site(net)
    const context = await contexts.resolve(a)
    expect(context.expand('Vehicle')).toBe('https://a.example/Vehicle')
    expect(net.asked).toEqual([a, 'https://a.example/more.jsonld'])
  })

  it('is stored on disk for the next start', async () => {
    const first = await site(web({ [a]: vehicle }))
    await first.contexts.resolve(a)
    const offline = web({})
    const second = await site(offline, first.file)
    const context = second.contexts.resolve(a) as Context
    expect(context.expand('Vehicle')).toBe('https://a.example/Vehicle')
    expect(offline.asked).toEqual([])
  })

  it('is refreshed in the background when it is too old, and remains in use if that fails', async () => {
    const documents: Web['documents'] = { [a]: vehicle }
    const net = web(documents, { 'cache-control': 'public, max-age=3600' })
    const { contexts, time, warnings } = await site(net)
    await contexts.resolve(a)
    time.now += 3_500_000
    void contexts.resolve(a)
    expect(net.asked).toHaveLength(1)

    delete documents[a]
    time.now += 200_000
    expect((contexts.resolve(a) as Context).expand('speed')).toBe('https://a.example/speed')
    await expect.poll(() => warnings).toEqual(['context.unavailable'])

    documents[a] = { '@context': { speed: 'https://new.example/speed' } }
    time.now += 200_000
    time.monotonic += limits.contextFailureMs.value + 1
    void contexts.resolve(a)
    await expect
      .poll(() => (contexts.resolve(a) as Context).expand('speed'))
      .toBe('https://new.example/speed')
  })

  it.each([
    ['no-store', limits.contextAgeMsMin],
    ['max-age=1', limits.contextAgeMsMin],
    ['max-age=99999999', limits.contextAgeMsMax],
  ])('limits a copy with %s to the minimum and maximum age', async (control, { value }) => {
    const net = web({ [a]: vehicle }, { 'cache-control': control })
    const { contexts, time } = await site(net)
    await contexts.resolve(a)
    time.now += value - 1
    void contexts.resolve(a)
    expect(net.asked).toHaveLength(1)
    time.now += 2
    void contexts.resolve(a)
    await expect.poll(() => net.asked.length).toBe(2)
  })

  it('keeps the valid copy when the newer one is not a context', async () => {
    const documents: Web['documents'] = { [a]: vehicle }
    const { contexts, time, warnings } = await site(web(documents))
    await contexts.resolve(a)
    documents[a] = '<html>'
    time.now += limits.contextAgeMs.value + 1
    void contexts.resolve(a)
    await expect.poll(() => warnings).toEqual(['context.unavailable'])
    expect((contexts.resolve(a) as Context).expand('speed')).toBe('https://a.example/speed')
  })

  it('does not fill the disk', async () => {
    const documents: Web['documents'] = {}
    const { contexts, database } = await site(web(documents))
    for (let i = 0; i < limits.contextsCachedMax.value + 5; i++) {
      documents[`https://a.example/${i}`] = vehicle
      await contexts.resolve(`https://a.example/${i}`)
    }
    const rows = database.prepare('SELECT url FROM context ORDER BY rowid').pluck().all()
    expect(rows).toHaveLength(limits.contextsCachedMax.value)
    expect(rows).not.toContain('https://a.example/0')
  })

  it('does not fill the memory: the contexts used last stay compiled', async () => {
    const terms = Array.from({ length: 3000 }, (_, i) => [
      `term${i}`,
      `https://a.example/${'x'.repeat(200)}${i}`,
    ])
    const documents: Web['documents'] = {}
    const { contexts } = await site(web(documents))
    const addresses = Array.from({ length: 8 }, (_, i) => `https://a.example/${i}`)
    const first: Context[] = []
    for (const address of addresses) {
      documents[address] = { '@context': Object.fromEntries(terms) }
      first.push(await contexts.resolve(address))
    }
    expect(await contexts.resolve(addresses[7]!)).toBe(first[7])
    expect(await contexts.resolve(addresses[6]!)).toBe(first[6])
    expect(await contexts.resolve(addresses[0]!)).not.toBe(first[0])
  })
})

describe('an unavailable context', () => {
  it('is reported, and not requested again for a few seconds', async () => {
    const net = web({})
    const { contexts, time } = await site(net)
    await expect(contexts.resolve(a)).rejects.toMatchObject({
      code: 'ngsi-ld.context-not-available',
      message: /404/,
    })
    await expect(contexts.resolve(a)).rejects.toMatchObject({ code: 'ngsi-ld.context-not-available' })
    expect(net.asked).toHaveLength(1)
    time.monotonic += limits.contextFailureMs.value + 1
    net.documents[a] = vehicle
    expect((await contexts.resolve(a)).expand('speed')).toBe('https://a.example/speed')
  })

  it.each([
    ['is not JSON', '<html></html>', /not JSON/],
    ['has no @context', { hello: 1 }, /no @context/],
    ['contains a forbidden definition', { '@context': { x: 7 } }, /x/],
    ['refers to itself', { '@context': [a] }, /deep/],
  ])("that %s is the client's error", async (_, document, message) => {
    const { contexts } = await site(web({ [a]: document }))
    await expect(contexts.resolve(a)).rejects.toMatchObject({ code: 'ngsi-ld.bad-request-data', message })
  })

  it('that refers to a missing one is unavailable', async () => {
    const { contexts } = await site(web({ [a]: { '@context': [b] } }))
    await expect(contexts.resolve(a)).rejects.toMatchObject({
      code: 'ngsi-ld.context-not-available',
      message: /b\.example/,
    })
  })
})
