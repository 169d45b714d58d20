/**
 * The client of the centre, with other brokers and intermediaries: a centre without gzip support refuses no
 * data, and an intermediary that responds for an absent broker loses none. The server is real; only its
 * responses are made up.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createPeer } from '#federation/peer.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { type CentralBroker, createCentralBroker } from './central-broker.ts'
import { done } from './outcome.ts'
import { areBuckets, replyOf } from './response-shapes.ts'

type Told = readonly [status: number, body?: string]
type Place = 'known' | 'temporal' | 'entities' | 'attribute' | 'selvedge' | 'info'

const typed = JSON.stringify({ type: 'https://uri.etsi.org/ngsi-ld/errors/ResourceNotFound' })
const tenantless = JSON.stringify({ type: 'https://uri.etsi.org/ngsi-ld/errors/NonexistentTenant' })
const page: Told = [404, '<html>default backend - 404</html>']
const ingress: Record<Place, Told> = {
  known: page,
  temporal: page,
  entities: page,
  attribute: page,
  selvedge: page,
  info: page,
}
const broker: Record<Place, Told> = {
  known: [404, typed],
  temporal: [204],
  entities: [200, '[]'],
  attribute: [204],
  selvedge: page,
  info: [404, typed],
}
const kin: Told = [200, '{"name":"selvedge"}']

function placeOf(method: string, url: string): Place {
  if (url.includes('/temporal/')) return method === 'GET' ? 'known' : 'temporal'
  if (url.includes('/attrs/')) return 'attribute'
  if (url.includes('/sourceIdentity')) return 'info'
  return url.startsWith('/selvedge/') ? 'selvedge' : 'entities'
}

let server: Server
let answers: Record<Place, Told>
let asked: Place[]
let knowsGzip: boolean
let saysDate: boolean
let now: number
let onAsked: (place: Place) => void
beforeEach(async () => {
  answers = { ...broker }
  ;[asked, knowsGzip, saysDate, now, onAsked] = [[], true, true, 0, () => undefined]
  server = createServer((incoming, response) => {
    const { method = '', url = '', headers } = incoming
    incoming.resume().on('end', () => {
      const place = placeOf(method, url)
      asked.push(place)
      const isPacked = headers['content-encoding'] === 'gzip'
      const [status, body = ''] = isPacked && !knowsGzip ? [400] : answers[place]
      response.sendDate = saysDate
      onAsked(place)
      setTimeout(() => response.writeHead(status).end(body), 5)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

function open(): CentralBroker {
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ngsi-ld/v1`
  const peer = createPeer({ allowsLoopback: true })
  return createCentralBroker(
    peer,
    { base, headers: {}, alias: 'a' },
    { now: () => now, monotonic: () => now },
  )
}
const past = (i = 0, value = 'x'): Step => {
  const instance = { type: 'Property', value, observedAt: '2026-01-01T00:00:00Z' }
  return { kind: 'past', entity: { id: `urn:a:${i}`, type: 'A' }, attributes: new Map([['v', [instance]]]) }
}
const drop: Step = { kind: 'drop', entity: { id: 'urn:a:0', type: 'A' }, name: 'v', dataset: '' }
const send = (centre: CentralBroker, step: Step) => centre.send({ kind: step.kind, steps: [step] })

it.each(['<html>Welcome</html>', '{"login":"https://login.example.org"}'])(
  'refuses no compressed request sent before missing gzip support was known: %s',
  async (body) => {
    const centre = open()
    // An intermediary accepts everything for a while.
    answers.temporal = [200, body]
    expect(await send(centre, past(0, 'x'.repeat(5000)))).toMatchObject({ kind: 'later' })
    answers.temporal = broker.temporal
    knowsGzip = false
    const steps = Array.from({ length: 4 }, (_, i) => past(i, 'x'.repeat(5000)))
    const outcomes = await Promise.all(steps.map((step) => send(centre, step)))
    expect(outcomes).toEqual(steps.map(() => done()))
  },
)

it('loses no history while an intermediary responds for the centre', async () => {
  const centre = open()
  answers = ingress
  for (let i = 0; i < 3; i++) expect(await send(centre, past())).toMatchObject({ kind: 'later' })
  answers = broker
  expect(await send(centre, past())).toEqual(done())
  answers = ingress
  expect(await send(centre, past())).toMatchObject({ kind: 'later' })
  answers = { ...broker, temporal: [404, tenantless], entities: page }
  expect(await send(centre, past())).toMatchObject({ kind: 'later' })
  // The broker returns between the request and its confirmation.
  answers = { ...broker, temporal: page }
  onAsked = (place) => {
    if (place === 'entities') answers.temporal = [201]
  }
  expect(await send(centre, past())).toEqual(done())
})

it.each<[string, Told]>([
  ['its own word', [404, typed]],
  ['an answer between two others', [404]],
  ['an answer that it does not know that', [501]],
])('skips histories after %s, and checks again after hours', async (_, sent) => {
  const centre = open()
  answers = { ...broker, temporal: sent }
  expect(await send(centre, past())).toEqual(done([], 1))
  asked = []
  expect(await send(centre, past())).toEqual(done([], 1))
  expect(asked).toEqual([])
  answers = broker
  now += limits.uplinkRecheckMs.value
  expect(await send(centre, past())).toEqual(done())
})

it('never concludes that a Selvedge keeps no histories', async () => {
  const centre = open()
  answers = { ...broker, selvedge: kin }
  expect(await send(centre, past())).toEqual(done())
  for (const temporal of [page, [404, typed], [501]] as const) {
    answers = { ...broker, selvedge: kin, temporal }
    expect(await send(centre, past())).toMatchObject({ kind: 'later' })
  }
  answers = { ...ingress, entities: broker.entities }
  expect(await send(centre, past())).toMatchObject({ kind: 'later' })
})

it('does not mistake a starting Selvedge for another broker', async () => {
  const centre = open()
  for (const selvedge of [page, [302, ''], [200, '<html>Please log in</html>']] as const) {
    answers = { ...ingress, selvedge }
    expect(await centre.isSelvedge()).toBe(undefined)
    expect(await centre.pseudonym()).toMatchObject({ kind: 'later' })
  }
  answers = { ...broker, selvedge: kin }
  expect(await centre.isSelvedge()).toBe(true)
  answers = ingress
  now += limits.uplinkRecheckMs.value
  expect(await centre.isSelvedge()).toBe(true)
  answers = broker
  expect(await centre.isSelvedge()).toBe(false)
  expect(await centre.pseudonym()).toMatchObject({ name: expect.stringMatching(/^127/) as string })
})

it.each([401, 403])(
  'treats a centre behind a proxy that blocks unknown paths as another broker: %d',
  async (status) => {
    const centre = open()
    const barred: Told = [status, '<html>no</html>']
    const digests = async () =>
      replyOf(await centre.confirmAbsentSelvedge('/selvedge/v1/digests'), areBuckets)
    // The proxy blocks everything for a while.
    answers = {
      known: barred,
      temporal: barred,
      entities: barred,
      attribute: barred,
      selvedge: barred,
      info: barred,
    }
    expect(await centre.isSelvedge()).toBe(undefined)
    expect(await centre.pseudonym()).toMatchObject({ kind: 'later' })
    expect(await digests()).toMatchObject({ kind: 'later' })
    answers = { ...broker, selvedge: barred, info: barred }
    expect(await centre.pseudonym()).toMatchObject({ name: expect.stringMatching(/^127/) as string })
    expect(await digests()).toEqual({ json: undefined })
    expect(await centre.isSelvedge()).toBe(false)
    expect(await send(centre, past())).toEqual(done())
    // A centre that keeps histories still does, even if a proxy blocks them for a while.
    answers.temporal = barred
    expect(await send(centre, past())).toMatchObject({ kind: 'later' })

    // A centre identified once stays identified.
    now += limits.uplinkRecheckMs.value
    answers = { ...broker, selvedge: kin }
    expect(await centre.isSelvedge()).toBe(true)
    now += limits.uplinkRecheckMs.value
    answers = { ...broker, selvedge: barred }
    expect(await centre.isSelvedge()).toBe(true)
  },
)

it('counts bytes as they are sent, compressed', async () => {
  const centre = open()
  const bytesOf = async (value: string): Promise<number> => {
    const before = centre.sentBytes()
    expect(await send(centre, past(0, value))).toEqual(done())
    return centre.sentBytes() - before
  }
  expect((await bytesOf('größer')) - (await bytesOf('kleine'))).toBe(2)
})

it('accepts an ambiguous refusal only if a broker responds to the next request', async () => {
  const centre = open()
  answers = { ...ingress, temporal: [400, '<html>blocked</html>'] }
  expect(await send(centre, past())).toMatchObject({ kind: 'later' })
  answers = { ...broker, temporal: answers.temporal }
  expect(await send(centre, past())).toMatchObject({
    kind: 'done',
    refused: [{ reason: '400 <html>blocked</html>' }],
  })
})

it('uses only valid responses for reconciliation', async () => {
  const centre = open()
  const ask = async () => replyOf(await centre.confirmAbsentSelvedge('/selvedge/v1/digests'), areBuckets)
  const buckets = { buckets: [[1, 2]] }
  for (const selvedge of [page, [302, ''], [200, '<html>Hello</html>'], [200, '{"login":1}']] as const) {
    answers = { ...ingress, selvedge }
    expect(await ask()).toMatchObject({ kind: 'later' })
  }
  // A broker never responds like this to a list query.
  answers = { ...broker, selvedge: [200, '{"buckets":1}'] }
  expect(await ask()).toMatchObject({ kind: 'later' })
  answers = broker
  expect(await ask()).toEqual({ json: undefined })
  answers = { ...ingress, selvedge: [200, JSON.stringify(buckets)] }
  expect(await ask()).toEqual({ json: buckets })
})

it('loses no deletion while an intermediary responds for the centre', async () => {
  const centre = open()
  answers = ingress
  expect(await send(centre, drop)).toMatchObject({ kind: 'later' })
  const remove: Step = { kind: 'remove', entity: { id: 'urn:a:0', type: 'A' }, had: new Set(['v']) }
  for (const entities of [page, [200, '<html>Please log in</html>'], [200, '[null]'], [302]] as const) {
    answers = { ...ingress, entities }
    expect(await send(centre, remove)).toMatchObject({ kind: 'later' })
    expect(await send(centre, drop)).toMatchObject({ kind: 'later' })
  }
  for (const attribute of [[404, typed], [404], [204]] as const) {
    answers = { ...broker, attribute }
    expect(await send(centre, drop)).toEqual(done())
  }
})

describe('a deletion of long ago', () => {
  const within = limits.uplinkArrivalMs.value
  const longAgo = Date.now() - 10 * within
  const went = (step: Step, at = longAgo): Step => ({ ...step, at }) as Step
  const remove: Step = { kind: 'remove', entity: { id: 'urn:a:0', type: 'A' }, had: new Set(['v', 'w']) }
  const written = (...times: readonly number[]): Told => [
    200,
    JSON.stringify([
      {
        id: 'urn:a:0',
        type: 'A',
        ...Object.fromEntries(
          times.map((time, i) => ['vw'[i], { type: 'Property', value: i, modifiedAt: new Date(time) }]),
        ),
      },
    ]),
  ]
  const attributes = () => asked.filter((place) => place === 'attribute').length
  beforeEach(() => {
    now = longAgo + 10 * within
  })

  it.each([[302], [500], [429]])(
    'is decided by modification times if the kind of centre is unknown: %d',
    async (status) => {
      const centre = open()
      answers = { ...broker, selvedge: [status], entities: written(longAgo - 1, longAgo + 10 * within) }
      expect(await send(centre, went(remove))).toEqual(done())
      expect(attributes()).toBe(1)
    },
  )

  it('waits for an unreachable centre to identify itself', async () => {
    const centre = open()
    answers = { ...broker, entities: written(longAgo - 1) }
    onAsked = (place) => {
      if (place === 'selvedge') server.closeAllConnections()
    }
    expect(await send(centre, went(remove))).toMatchObject({ kind: 'later', isUnreachable: true })
    expect(attributes()).toBe(0)
  })

  it('keeps foreign attributes when it is repeated after a refusal', async () => {
    const centre = open()
    answers = { ...broker, attribute: [400, typed], entities: written(longAgo - 1, longAgo + 10 * within) }
    const outcome = await send(centre, went(remove))
    expect(outcome).toMatchObject({ refused: [{ step: { name: 'v' } }] })
    const [{ step } = { step: drop }] = outcome.kind === 'done' ? outcome.refused : []
    answers = { ...broker, entities: written(longAgo + 10 * within) }
    asked = []
    expect(await send(centre, step)).toEqual(done())
    expect(attributes()).toBe(0)
  })

  it('keeps attributes that a Selvedge reports as foreign', async () => {
    const centre = open()
    const others = JSON.stringify({ name: 'selvedge', others: { 'urn:a:0': ['v'] } })
    answers = { ...broker, selvedge: [200, others], entities: written(longAgo - 1) }
    const behind = limits.uplinkBehindMs.value
    expect(await send(centre, went(drop, now - behind - 1))).toEqual(done())
    expect(attributes()).toBe(0)
    // A recent deletion needs no query.
    expect(await send(centre, went(drop, now - behind))).toEqual(done())
    expect(attributes()).toBe(1)
  })

  it('leaves an entity of another type alone', async () => {
    const centre = open()
    expect(await send(centre, went(drop))).toEqual(done())
    expect(attributes()).toBe(0)
  })

  it('does not apply to a recent deletion, whatever the clocks say', async () => {
    const centre = open()
    saysDate = false
    answers = { ...broker, entities: written(now + 100 * within, now + 100 * within) }
    const step = { ...remove, had: new Set(['v']) } as Step
    expect(await send(centre, went(step, now - within))).toEqual(done())
    expect(attributes()).toBe(1)
    expect(await send(centre, went(step, now - within - 1))).toEqual(done())
    expect(attributes()).toBe(1)
  })
})

describe('a response beyond the size limit', () => {
  afterEach(restoreLimits)
  const large = (length: number) => JSON.stringify(Array.from({ length }, (_, i) => ({ id: `urn:b:${i}` })))

  it('is requested in parts, and a single item beyond the limit is refused', async () => {
    setLimit('sourceAnswerBytesMax', 1000)
    const centre = open()
    const steps = [0, 1, 2].map(
      (i): Step => ({ kind: 'remove', entity: { id: `urn:a:${i}`, type: 'A' }, had: new Set(['v']) }),
    )
    answers = { ...answers, selvedge: [404, typed], entities: [200, large(100)] }
    expect(await centre.send({ kind: 'remove', steps })).toMatchObject({
      kind: 'done',
      refused: steps.map((step) => ({ step })),
    })
    expect(asked).toEqual(['selvedge', ...Array.from({ length: 5 }, () => 'entities')])
    // An entity with foreign attributes loses only those from here.
    answers.entities = [200, JSON.stringify([{ id: 'urn:a:1', type: 'A', v: {}, w: {} }])]
    asked = []
    expect(await centre.send({ kind: 'remove', steps })).toEqual(done())
    // Includes the request for the kind of centre.
    expect(asked.filter((place) => place === 'attribute')).toHaveLength(1)
  })

  it('is requested as shorter histories', async () => {
    setLimit('sourceAnswerBytesMax', 1000)
    const centre = open()
    const instances = Array.from({ length: 4 }, (_, i) => ({
      type: 'Property',
      value: i,
      observedAt: `2026-01-01T00:00:0${i}Z`,
    }))
    const step: Step = { ...past(), kind: 'past', attributes: new Map([['v', instances]]) } as Step
    answers.known = [200, large(100)]
    onAsked = (place) => {
      if (place === 'known') answers.known = broker.known
    }
    expect(await send(centre, step)).toEqual(done())
    expect(asked.filter((one) => one === 'temporal')).toHaveLength(2)
    // An item beyond the limit does not hold up others.
    answers.known = [200, large(100)]
    expect(await send(centre, past())).toMatchObject({ kind: 'done', refused: [{ step: past() }] })
  })
})

it('sends to a tenant that the first write creates', async () => {
  const centre = open()
  const none: Told = [404, tenantless]
  answers = { ...ingress, info: none, entities: none, attribute: none }
  expect(await centre.pseudonym()).toMatchObject({ name: expect.stringMatching(/^127/) as string })
  const remove: Step = { kind: 'remove', entity: { id: 'urn:a:0', type: 'A' }, had: new Set(['v']) }
  expect(await send(centre, remove)).toEqual(done())
  expect(await send(centre, drop)).toEqual(done())
})
