/** Snapshots of histories and of sources, their status, their list, and their notifications [NGSI-LD 1.9]. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type HttpGateway, type Reply, startHttpGateway } from '#test/kit/http-gateway.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'

const base = '/ngsi-ld/v1'
const snapshots = `${base}/snapshots`
const histories = `${base}/temporal/entities`
const tanks = { type: 'Query', entities: [{ type: 'Tank' }] }
const in2025 = { timerel: 'between', timeAt: '2025-01-01T00:00:00Z', endTimeAt: '2026-01-01T00:00:00Z' }
const dataFolder = mkdtempSync(join(tmpdir(), 'selvedge-snapshots-'))
let here: HttpGateway
let there: HttpGateway
let receiver: Receiver

const level = (value: number, month: string) => ({
  type: 'Property',
  value,
  observedAt: `2025-${month}-01T00:00:00Z`,
})
const take = async (body: object): Promise<string> => {
  const reply = await here.send('POST', snapshots, { type: 'Snapshot', ...body })
  expect([reply.status, reply.text]).toEqual([201, ''])
  return reply.headers['location']!
}
const from = (location: string) => ({ 'NGSILD-Snapshot': location.split('/').at(-1)! })
const shown = async (location: string): Promise<Record<string, unknown>> => (await here.get(location)).json()
const levels = async (location: string, id: string): Promise<unknown> => {
  const reply: Reply = await here.get(`${histories}/${id}?options=temporalValues`, from(location))
  return (reply.json() as { level: { values: unknown } }).level.values
}

beforeAll(async () => {
  here = await startHttpGateway({ dataFolder, alias: 'here' })
  there = await startHttpGateway({ alias: 'there' })
  receiver = await createReceiver()
  const mine = { id: 'urn:t:1', type: 'Tank', level: [level(1, '01'), level(2, '02'), level(3, '03')] }
  await here.send('POST', histories, mine)
  await there.send('POST', histories, { id: 'urn:t:2', type: 'Tank', level: [level(5, '05')] })
})
afterAll(async () => {
  await here.close()
  await there.close()
  await receiver.down()
  rmSync(dataFolder, { recursive: true, force: true })
})

describe('a snapshot of histories', () => {
  let taken: string

  it('shall contain the histories within their window', async () => {
    const window = { ...in2025, endTimeAt: '2025-03-01T00:00:00Z' }
    taken = await take({ snapshotTemporalQueries: [{ ...tanks, temporalQ: window }] })
    expect(await shown(taken)).toMatchObject({
      snapshotStatus: 'success',
      snapshotTemporalQueriesDetails: [{ resultStatus: 'success' }],
    })
    await here.send('POST', `${histories}/urn:t:1/attrs`, { level: [level(9, '02')] })
    const values = [
      [1, '2025-01-01T00:00:00Z'],
      [2, '2025-02-01T00:00:00Z'],
    ]
    expect(await levels(taken, 'urn:t:1')).toEqual(values)
    const query = `${histories}?type=Tank&timerel=after&timeAt=2025-02-01T00:00:00Z`
    const found = (await here.get(query, from(taken))).json() as { level: object[] }[]
    expect(found.map((one) => one.level.length)).toEqual([1])
    const posted = await here.send(
      'POST',
      `${base}/temporal/entityOperations/query`,
      { ...tanks, temporalQ: in2025 },
      from(taken),
    )
    expect(posted.json()).toMatchObject([{ id: 'urn:t:1' }])
  })

  it('shall contain no entities that were not requested', async () => {
    expect((await here.get(`${base}/entities?type=Tank`, from(taken))).json()).toEqual([])
  })

  it('shall exist after a restart, and in its clone', async () => {
    await here.close()
    here = await startHttpGateway({ dataFolder, alias: 'here' })
    expect(await levels(taken, 'urn:t:1')).toHaveLength(2)
    const clone = (await here.ask('POST', `${taken}/clone`)).headers['location']!
    expect(await levels(clone, 'urn:t:1')).toHaveLength(2)
    expect(await shown(clone)).toMatchObject({ snapshotStatus: 'success' })
  })
})

describe('a snapshot with sources', () => {
  const operations = ['queryEntity', 'retrieveTemporal', 'queryTemporal']
  const register = async (id: string, endpoint: string): Promise<void> => {
    const information = [{ entities: [{ type: 'Tank' }] }]
    const body = { id, type: 'ContextSourceRegistration', information, operations, endpoint }
    expect((await here.send('POST', `${base}/csourceRegistrations`, body)).status).toBe(201)
  }

  it('shall contain the data of the sources', async () => {
    await register('urn:r:1', there.url)
    const queries = [{ ...tanks, temporalQ: in2025 }]
    const taken = await take({ snapshotQueries: [tanks], snapshotTemporalQueries: queries })
    const found = (await here.get(`${base}/entities?type=Tank`, from(taken))).json() as { id: string }[]
    expect(found.map(({ id }) => id)).toEqual(['urn:t:1', 'urn:t:2'])
    expect(await levels(taken, 'urn:t:2')).toEqual([[5, '2025-05-01T00:00:00Z']])
    expect(await shown(taken)).toMatchObject({
      snapshotStatus: 'success',
      snapshotQueriesDetails: [{ resultStatus: 'success' }],
    })
  })

  it('shall contain all parts of an entity that one source found', async () => {
    const other = await startHttpGateway({ alias: 'other' })
    const part = { id: 'urn:s:1', type: 'Silo' }
    const at = (value: number) => ({ type: 'Property', value })
    const silos = { entities: [{ type: 'Silo' }] }
    const ids = ['urn:r:silo:1', 'urn:r:silo:2']
    try {
      for (const [i, source] of [there, other].entries())
        expect(
          (
            await here.send('POST', `${base}/csourceRegistrations`, {
              id: ids[i],
              type: 'ContextSourceRegistration',
              information: [silos],
              operations,
              endpoint: source.url,
            })
          ).status,
        ).toBe(201)
      await there.send('POST', `${base}/entities`, { ...part, level: at(1) })
      await other.send('POST', `${base}/entities`, { ...part, heat: at(2) })
      const taken = await take({ snapshotQueries: [{ type: 'Query', ...silos, q: 'level==1' }] })
      const found = await here.get(`${base}/entities?type=Silo&options=keyValues`, from(taken))
      expect(found.json()).toEqual([{ ...part, level: 1, heat: 2 }])
    } finally {
      for (const id of ids) await here.ask('DELETE', `${base}/csourceRegistrations/${id}`)
      await other.close()
    }
  })

  it('shall be partial if a source is unreachable', async () => {
    await register('urn:r:2', 'http://127.0.0.1:9')
    const nothing = { type: 'Query', entities: [{ type: 'Boat' }] }
    expect(await shown(await take({ snapshotQueries: [nothing, tanks] }))).toMatchObject({
      snapshotStatus: 'partial',
      snapshotQueriesDetails: [
        { resultStatus: 'empty' },
        { resultStatus: 'partial', problemDetails: [{ detail: expect.stringContaining('urn:r:2') }] },
      ],
    })
  })
})

describe('an endpoint for notifications', () => {
  it('shall be notified when the snapshot is complete, and when it is deleted', async () => {
    const receiverInfo = [{ key: 'X-Token', value: 'secret' }]
    const taken = await take({ snapshotQueries: [tanks], endpoint: receiver.url('/told'), receiverInfo })
    await expect.poll(() => receiver.received.length).toBe(1)
    const [first] = receiver.received
    expect(first!.headers).toMatchObject({ 'x-token': 'secret', 'content-type': 'application/json' })
    expect(JSON.parse(first!.body)).toMatchObject({
      type: 'SnapshotNotification',
      snapshotId: taken.split('/').at(-1),
      snapshotStatus: 'partial',
    })
    expect(await shown(taken)).toMatchObject({
      endpoint: receiver.url('/told'),
      receiverInfo: [{ key: 'X-Token', value: '***' }],
    })
    await here.ask('DELETE', taken)
    await expect.poll(() => receiver.received.length).toBe(2)
    const { expiresAt, notifiedAt } = JSON.parse(receiver.received[1]!.body) as Record<string, string>
    expect(Date.parse(expiresAt!)).toBeLessThan(Date.parse(notifiedAt!))
  })
})

describe('snapshots', () => {
  it('shall be listed, and purged by their members', async () => {
    const low = await take({ snapshotQueries: [tanks], snapshotPriority: 1 })
    const all = await here.get(`${snapshots}?limit=1&count=true`)
    expect(Number(all.headers['ngsild-results-count'])).toBeGreaterThan(2)
    expect(all.json()).toMatchObject([{ type: 'Snapshot' }])
    expect((await here.ask('DELETE', `${snapshots}?q=snapshotPriority<3`)).status).toBe(204)
    expect((await here.get(low)).status).toBe(404)
    expect(((await here.get(snapshots)).json() as object[]).length).toBeGreaterThan(1)
  })

  it('shall be evicted by priority, or be rejected', async () => {
    await here.ask('DELETE', `${snapshots}?q=snapshotStatus`)
    setLimit('snapshotsMax', 2)
    try {
      const [five, six] = [
        await take({ snapshotQueries: [tanks] }),
        await take({ snapshotQueries: [tanks], snapshotPriority: 6 }),
      ]
      const refused = await here.send('POST', snapshots, { type: 'Snapshot', snapshotQueries: [tanks] })
      expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('TooManyResults')])
      await take({ snapshotQueries: [tanks], snapshotPriority: 7 })
      expect([(await here.get(five)).status, (await here.get(six)).status]).toEqual([404, 200])
      setLimit('snapshotsBytesMax', 1)
      const body = { type: 'Snapshot', snapshotQueries: [tanks], snapshotPriority: 1 }
      expect((await here.send('POST', snapshots, body)).status).toBe(403)
    } finally {
      restoreLimits()
    }
  })

  it('shall not use the same space or the same name twice, even with concurrent requests', async () => {
    await here.ask('DELETE', `${snapshots}?q=snapshotStatus`)
    setLimit('snapshotsMax', 2)
    const post = async (members: object) =>
      (await here.send('POST', snapshots, { type: 'Snapshot', snapshotQueries: [tanks], ...members })).status
    const rising = (a: number, b: number): number => a - b
    try {
      const same = { id: 'urn:snapshot:same' }
      expect((await Promise.all([post(same), post(same), post(same)])).toSorted(rising)).toEqual([
        201, 409, 409,
      ])
      expect((await Promise.all([post({}), post({}), post({})])).toSorted(rising)).toEqual([201, 403, 403])
    } finally {
      restoreLimits()
    }
  })

  it('shall be rejected beyond the limits of instances and bytes', async () => {
    setLimit('snapshotInstancesMax', 2)
    try {
      const body = { type: 'Snapshot', snapshotTemporalQueries: [{ ...tanks, temporalQ: in2025 }] }
      expect((await here.send('POST', snapshots, body)).status).toBe(403)
      restoreLimits()
      setLimit('snapshotBytesMax', 100)
      expect((await here.send('POST', snapshots, body)).status).toBe(403)
      const entities = { type: 'Snapshot', snapshotQueries: [tanks] }
      expect((await here.send('POST', snapshots, entities)).status).toBe(403)
    } finally {
      restoreLimits()
    }
  })
})
