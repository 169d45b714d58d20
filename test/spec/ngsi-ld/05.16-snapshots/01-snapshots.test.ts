/** Snapshots: query results at one instant, read with the header NGSILD-Snapshot [NGSI-LD 1.9]. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { property } from '#test/kit/gateway-of-file.ts'
import { type HttpGateway, type Reply, startHttpGateway } from '#test/kit/http-gateway.ts'

const dataFolder = mkdtempSync(join(tmpdir(), 'selvedge-snapshots-'))
const base = '/ngsi-ld/v1'
const snapshots = `${base}/snapshots`
const id = 'urn:ngsi-ld:Snapshot:one'
const within = { 'NGSILD-Snapshot': id }
const rooms = { type: 'Query', entities: [{ type: 'Room' }] }
let gateway: HttpGateway

const room = (n: number, temperature: number) => ({
  id: `urn:ngsi-ld:Room:${n}`,
  type: 'Room',
  temperature: property(temperature),
})
const take = (body: object, headers = {}): Promise<Reply> =>
  gateway.send('POST', snapshots, { type: 'Snapshot', ...body }, headers)
const warm = (headers = {}): Promise<Reply> =>
  gateway.get(`${base}/entities?type=Room&q=temperature>20&options=simplified`, headers)
const sizeOf = async (reply: Promise<Reply>): Promise<number> => ((await reply).json() as unknown[]).length

beforeAll(async () => {
  gateway = await startHttpGateway({ dataFolder })
  for (const n of [1, 2, 3]) await gateway.send('POST', `${base}/entities`, room(n, 18 + n))
  await gateway.send('POST', `${base}/entities`, { id: 'urn:ngsi-ld:Car:1', type: 'Car' })
})
afterAll(async () => {
  await gateway.close()
  rmSync(dataFolder, { recursive: true, force: true })
})

describe('a snapshot', () => {
  let times: unknown

  it('shall be created and described', async () => {
    times = (await gateway.get(`${base}/entities/urn:ngsi-ld:Room:1?options=sysAttrs`)).json()
    const reply = await take({ id, snapshotQueries: [rooms, rooms], snapshotLifetime: 'PT1H' })
    expect([reply.status, reply.headers['location']]).toEqual([201, `${snapshots}/${id}`])
    const told: Record<string, string> = (await gateway.get(`${snapshots}/${id}`)).json()
    expect(told).toMatchObject({ id, type: 'Snapshot', snapshotStatus: 'success', snapshotPriority: 5 })
    expect(Date.parse(told['expiresAt']!) - Date.parse(told['createdAt']!)).toBe(3_600_000)
    expect(told['lastUsedAt']).toBe(told['createdAt'])
  })

  it('shall remain unchanged when the entities change', async () => {
    await gateway.send('PATCH', `${base}/entities/urn:ngsi-ld:Room:1/attrs`, { temperature: property(40) })
    await gateway.ask('DELETE', `${base}/entities/urn:ngsi-ld:Room:3`)
    expect((await warm()).json()).toMatchObject([{ temperature: 40 }])
    expect((await warm(within)).json()).toMatchObject([{ id: 'urn:ngsi-ld:Room:3', temperature: 21 }])
    const reply = await gateway.get(`${base}/entities/urn:ngsi-ld:Room:1?options=sysAttrs`, within)
    expect(reply.json()).toEqual(times)
    expect((await gateway.get(`${base}/entities/urn:ngsi-ld:Car:1`, within)).status).toBe(404)
    expect(await sizeOf(gateway.send('POST', `${base}/entityOperations/query`, rooms, within))).toBe(3)
    expect((await gateway.get(`${base}/types`, within)).json()).toHaveProperty('typeList', ['Room'])
    expect((await gateway.get(`${snapshots}/${id}`)).json()).toHaveProperty('lastUsedAt')
  })

  it('shall be named in responses that read from it', async () => {
    const reply = await gateway.get(`${base}/entities?type=Room`, within)
    expect(reply.headers['ngsild-snapshot']).toBe(id)
  })

  it('shall be read-only, and not be treated as a history', async () => {
    const created = await gateway.send('POST', `${base}/entities`, room(9, 1), within)
    expect([created.status, created.text]).toEqual([422, expect.stringContaining('OperationNotSupported')])
    expect((await gateway.get(`${base}/temporal/entities/urn:ngsi-ld:Room:1`, within)).status).toBe(404)
  })

  it('shall exist after a restart', async () => {
    await gateway.close()
    gateway = await startHttpGateway({ dataFolder })
    expect(await sizeOf(gateway.get(`${base}/entities?type=Room`, within))).toBe(3)
    expect(await sizeOf(gateway.get(`${base}/entities?type=Room`))).toBe(2)
  })

  it('shall change only lifetime, priority and endpoint', async () => {
    const reply = await gateway.send('PATCH', `${snapshots}/${id}`, { snapshotPriority: 9 })
    expect([reply.status, reply.json()]).toMatchObject([200, { snapshotPriority: 9 }])
    expect((await gateway.send('PATCH', `${snapshots}/${id}`, { snapshotQueries: [rooms] })).status).toBe(400)
    expect((await gateway.send('PATCH', `${snapshots}/${id}`, { snapshotStatus: 'empty' })).status).toBe(400)
  })

  it('shall be cloned', async () => {
    const reply = await gateway.ask('POST', `${snapshots}/${id}/clone`)
    expect(reply.status).toBe(201)
    const clone = reply.headers['location']!.split('/').at(-1)!
    const read = { 'NGSILD-Snapshot': clone }
    expect(await sizeOf(gateway.get(`${base}/entities?type=Room`, read))).toBe(3)
    expect((await gateway.get(`${snapshots}/${clone}`)).json()).toMatchObject({ snapshotPriority: 9 })
  })

  it('shall be cloned with its own priority, and be last used at its creation', async () => {
    const wanted = { type: 'Snapshot', snapshotPriority: 3 }
    const { headers } = await gateway.send('POST', `${snapshots}/${id}/clone`, wanted)
    const location = headers['location']!
    const clone = (await gateway.get(location)).json() as Record<string, unknown>
    expect(clone).toMatchObject({ snapshotPriority: 3, lastUsedAt: clone['createdAt'] })
    const queries = { snapshotQueries: [rooms] }
    expect((await gateway.send('POST', `${snapshots}/${id}/clone`, queries)).status).toBe(400)
    for (const q of ['speed>50', 'snapshotLifetime'])
      expect((await gateway.ask('DELETE', `${snapshots}?q=${q}`)).status).toBe(400)
    await take({ id: 'urn:snap:8', snapshotQueries: [rooms] })
    await take({ id: 'urn:snap:9', snapshotQueries: [rooms] })
    expect((await gateway.ask('DELETE', `${snapshots}?q=id==%22urn:snap:8%22`)).status).toBe(204)
    const left = [8, 9].map(async (n) => (await gateway.get(`${snapshots}/urn:snap:${n}`)).status)
    expect(await Promise.all(left)).toEqual([404, 200])
    expect((await gateway.ask('DELETE', `${snapshots}?q=id==urn:snap:9`)).status).toBe(204)
    expect((await gateway.get(`${snapshots}/urn:snap:9`)).status).toBe(404)
    expect((await gateway.ask('DELETE', location)).status).toBe(204)
  })

  it('shall belong to its tenant', async () => {
    const tenant = { 'NGSILD-Tenant': 'other' }
    await gateway.send('POST', `${base}/entities`, room(1, 1), tenant)
    expect((await gateway.get(`${snapshots}/${id}`, tenant)).status).toBe(404)
    expect((await gateway.get(`${base}/entities?type=Room`, { ...tenant, ...within })).status).toBe(404)
    expect((await take({ id, snapshotQueries: [rooms] }, tenant)).status).toBe(201)
  })

  it('shall be empty when nothing was found', async () => {
    const path = (await take({ snapshotQueries: [{ type: 'Query', entities: [{ type: 'Boat' }] }] })).headers[
      'location'
    ]!
    expect((await gateway.get(path)).json()).toHaveProperty('snapshotStatus', 'empty')
  })

  it('shall end with its lifetime', async () => {
    const path = (await take({ snapshotQueries: [rooms], snapshotLifetime: 'PT0.2S' })).headers['location']!
    await expect.poll(async () => (await gateway.get(path)).status).toBe(404)
  })

  it('shall be deleted with its file, individually or by a purge of all', async () => {
    const files = () => readdirSync(join(dataFolder, 'snapshots', '-')).filter((name) => name.endsWith('.db'))
    const before = files().length
    expect((await gateway.ask('DELETE', `${snapshots}/${id}`)).status).toBe(204)
    expect(files().length).toBeLessThan(before)
    expect((await gateway.get(`${base}/entities?type=Room`, within)).status).toBe(404)
    expect((await gateway.ask('DELETE', `${snapshots}/${id}`)).status).toBe(404)
    expect((await gateway.ask('DELETE', snapshots)).status).toBe(400)
    expect((await gateway.ask('DELETE', `${snapshots}?q=`)).status).toBe(400)
    expect(files().length).toBeGreaterThan(0)
    expect((await gateway.ask('DELETE', `${snapshots}?q=snapshotStatus`)).status).toBe(204)
    expect(files()).toEqual([])
  })
})

describe('an invalid snapshot', () => {
  it.each([
    ['without queries', {}, 400],
    ['with an empty list of queries', { snapshotQueries: [] }, 400],
    ['with an empty query', { snapshotQueries: [{ type: 'Query' }] }, 400],
    ['with a priority beyond ten', { snapshotQueries: [rooms], snapshotPriority: 11 }, 400],
    ['with an invalid lifetime', { snapshotQueries: [rooms], snapshotLifetime: 'long' }, 400],
    ['of another type', { type: 'Query', snapshotQueries: [rooms] }, 400],
    ['with unknown members', { snapshotQueries: [rooms], speed: 1 }, 400],
    ['with an empty list of queries of histories', { snapshotTemporalQueries: [] }, 400],
    ['with an invalid time', { snapshotTemporalQueries: [{ ...rooms, temporalQ: { timerel: 'now' } }] }, 400],
    ['with an invalid endpoint', { snapshotQueries: [rooms], endpoint: 'x' }, 400],
    ['with receiverInfo but no endpoint', { snapshotQueries: [rooms], receiverInfo: [] }, 400],
  ])('%s', async (_, body, status) => expect((await take(body)).status).toBe(status))

  it('with the id of another snapshot', async () => {
    expect((await take({ id, snapshotQueries: [rooms] })).status).toBe(201)
    expect((await take({ id, snapshotQueries: [rooms] })).status).toBe(409)
  })
})
