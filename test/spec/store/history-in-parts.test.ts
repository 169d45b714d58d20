/**
 * Reading a history in parts makes progress even if more was written at one time than an answer holds. A
 * client that begins the next part where the last one ended reaches the end and misses nothing.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { temporaryFolder } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'

const most = 50
const path = '/ngsi-ld/v1/temporal/entities'
const at = (minute: number): string => new Date(Date.UTC(2025, 0, 1) + minute * 60_000).toISOString()
const { folder, remove } = temporaryFolder()
let gateway: GatewayInside

beforeAll(async () => {
  gateway = await startGatewayInside(folder, {
    ...noPlugins,
    SELVEDGE_HISTORY_INSTANCES_PER_ANSWER: String(most),
  })
})
afterAll(async () => {
  await gateway.close()
  remove()
})
afterEach(restoreLimits)

interface Instance {
  readonly instanceId: string
  readonly modifiedAt: string
}

/** An entity with many values of one commit, and values before and after it with commits of their own. */
async function create(id: string, amount: number, others: number): Promise<void> {
  const values = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ type: 'Property', value: i, observedAt: at(from + i) }))
  const one = async (from: number): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 2))
    const answer = await gateway.send('POST', path, { id, type: 'Vehicle', speed: values(from, 1) })
    expect(answer.status).toBeLessThan(300)
  }
  for (let i = 0; i < others; i++) await one(i)
  await new Promise((resolve) => setTimeout(resolve, 2))
  await gateway.send('POST', path, {
    id,
    type: 'Vehicle',
    speed: values(1000, amount),
    level: values(1000, 3),
  })
  for (let i = 0; i < others; i++) await one(10_000 + i)
}

/**
 * Follows the parts by Content-Range alone, as the standard defines it; returns the instance ids per part.
 */
async function followed(
  query: string,
  next: (end: string) => string,
  evolutionsOf: (json: unknown) => Record<string, Instance[]>[],
  start = '',
): Promise<string[][]> {
  const parts: string[][] = []
  for (let window = start; parts.length < 300; ) {
    const answer = await gateway.get(`${path}${query}${window}`)
    expect([200, 206]).toContain(answer.status)
    const lists = evolutionsOf(answer.json()).flatMap(({ speed = [], level = [] }) => [...speed, ...level])
    parts.push(lists.map(({ instanceId }) => instanceId))
    if (answer.status === 200) return parts
    window = next(/date-time .*?Z-(.*?)\//.exec(answer.headers['content-range']!)![1]!)
  }
  throw new TypeError('the parts do not end')
}
const single = (json: unknown) => [json as Record<string, Instance[]>]
const several = (json: unknown) => json as Record<string, Instance[]>[]

test.each([
  [40, 60],
  [49, 3],
  [50, 3],
  [51, 3],
  [400, 3],
])(
  'of %i values of one commit, with %i others, none is missed in either direction',
  async (amount, others) => {
    const id = `urn:ngsi-ld:Vehicle:${amount}`
    await create(id, amount, others)
    const total = amount + 3 + 2 * others
    const query = `/${id}?timeproperty=modifiedAt&options=sysAttrs`
    const forwards = await followed(query, (end) => `&timerel=after&timeAt=${end}`, single)
    expect(new Set(forwards.flat()).size).toBe(total)
    const backwards = await followed(`${query}&lastN=9999`, (end) => `&timerel=before&timeAt=${end}`, single)
    // Backwards, the end is not included in the next part.
    expect(backwards.flat()).toHaveLength(total)
    expect(new Set(backwards.flat()).size).toBe(total)
  },
)

test('a query for more lists than instances fit into an answer makes progress', async () => {
  const value = (minute: number) => ({ type: 'Property', value: minute, observedAt: at(minute) })
  for (let i = 0; i < 40; i++) {
    const bus = {
      id: `urn:ngsi-ld:Bus:${i}`,
      type: 'Bus',
      speed: [i, i + 1, 500].map(value),
      level: [0, 500].map(value),
    }
    await gateway.send('POST', path, bus)
  }
  const after = (time: string): string => `&timerel=after&timeAt=${time}`
  const parts = await followed('?type=Bus&limit=100', after, several, after(at(0)))
  expect(new Set(parts.flat()).size).toBe(200)
})

test('a time with too many instances does not prevent the parts before it', async () => {
  const speedsOf = (times: readonly string[]) =>
    times.map((observedAt, value) => ({ type: 'Property', value, observedAt }))
  const minutes = Array.from({ length: 60 }, (_, minute) => at(minute))
  const times = { early: minutes, late: Array.from({ length: 300 }, () => at(100)) }
  for (const [name, own] of Object.entries(times)) {
    const tram = { id: `urn:ngsi-ld:Tram:${name}`, type: 'Tram', speed: speedsOf(own) }
    expect((await gateway.send('POST', path, tram)).status).toBe(201)
  }
  setLimit('temporalInstantMax', 200)
  const from = async (time: string) =>
    (await gateway.get(`${path}?type=Tram&timerel=after&timeAt=${time}`)).status
  expect([await from(at(0)), await from(at(99)), await from(at(101))]).toEqual([206, 403, 200])
})

test('an entity map names every entity of a page, even if one of them needed further reads', async () => {
  const speed = Array.from({ length: 60 }, (_, value) => ({ type: 'Property', value, observedAt: at(0) }))
  const ids = [1, 2].map((n) => `urn:ngsi-ld:Train:${n}`)
  for (const id of ids) await gateway.send('POST', path, { id, type: 'Train', speed })
  const query = `?type=Train&timerel=after&timeAt=${at(0)}&entityMap=true`
  const { status, headers } = await gateway.get(`${path}${query}`)
  expect(status).toBeLessThan(300)
  const map = (await gateway.get(headers['ngsild-entitymap']!)).json() as { entityMap: object }
  expect(Object.keys(map.entityMap).toSorted()).toEqual(ids)
})

test('a time with more instances than an answer holds is refused, naming that time', async () => {
  const id = 'urn:ngsi-ld:Vehicle:many'
  await create(id, 300, 1)
  setLimit('temporalInstantMax', 200)
  const query = `${path}/${id}?timeproperty=modifiedAt&options=sysAttrs`
  const first = await gateway.get(query)
  const end = /Z-(.*?)\//.exec(first.headers['content-range']!)![1]!
  const refused = await gateway.get(`${query}&timerel=after&timeAt=${end}`)
  const { detail } = refused.json() as { detail: string }
  expect([refused.status, detail]).toEqual([
    403,
    expect.stringMatching(/more than 200 instances.*one time, 20/),
  ])
  expect(detail).toContain(`one time, ${end};`)
  const around = [
    `timerel=before&timeAt=${end}`,
    `timerel=after&timeAt=${new Date(Date.parse(end) + 1).toISOString()}`,
  ]
  for (const window of around) expect((await gateway.get(`${query}&${window}`)).status).toBe(200)
  expect((await gateway.get(`${path}/${id}`)).status).toBe(206)
})
