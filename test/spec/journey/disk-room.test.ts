/**
 * A disk that fills or fails while a gateway works on it: what is needed least is given up in an order, deleting goes on
 * when nothing else does, the process lives, and all is as before when the disk is well again.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterEach, expect, it, vi } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import { makeBackup } from '#store/backup/backup.ts'
import { failingDiskObstacle, makeFailingDisk } from '#test/kit/failing-disk.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { connectRaw, publishPacket, type RawClient } from '#test/kit/mqtt.ts'

/** What people may want to be rid of when the disk is full, by where it is. */
const wishes = {
  subscriptions: {
    id: 'urn:x:subscription',
    type: 'Subscription',
    entities: [{ type: 'Note' }],
    notification: { endpoint: { uri: 'http://127.0.0.1:9/' } },
  },
  csourceRegistrations: {
    id: 'urn:x:source',
    type: 'ContextSourceRegistration',
    endpoint: 'http://127.0.0.1:9',
    information: [{ entities: [{ type: 'Elsewhere' }] }],
  },
}

import { describeAllowed } from '#test/kit/peers.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { openSmallDisk, type SmallDisk, smallDiskObstacle } from '#test/kit/small-disk.ts'
import { observationId, publishAll, reading, result } from './observations.ts'

const path = '/ngsi-ld/v1/entities'
const note = (id: string): object => ({ id: `urn:ngsi-ld:Note:${id}`, type: 'Note' })
const within = { interval: 100 }
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

async function start(dataFolder: string | undefined, env: Record<string, string> = {}) {
  const gateway = await startGatewayProcess({ ...(dataFolder !== undefined && { dataFolder }), env })
  cleanups.push(async () => {
    await gateway.kill()
    await gateway.stop()
  })
  return { gateway, client: httpClient(gateway.httpUrl) }
}
const create = async (client: HttpClient, id: string): Promise<number> =>
  (await client.send('POST', path, note(id))).status
const bodyOf = async (client: HttpClient) =>
  (await client.get('/health/ready')).json() as { status: string; reasons: string[]; degraded: string[] }
const isAlive = async (gateway: GatewayProcess): Promise<boolean> =>
  (await httpClient(gateway.httpUrl).get('/health/live')).status === 200

/** Publishes numbers at QoS 1, 20 at a time, and returns how many were acknowledged. */
async function publishUntil(device: RawClient, isOver: () => boolean): Promise<number> {
  const messageOf = (i: number) => ({
    topic: 'senml/x',
    payload: reading('cellar:temperature', i, 1_700_000_000 + i),
  })
  let count = 0
  for (; !isOver(); count += 20)
    await publishAll(
      device,
      Array.from({ length: 20 }, (_, i) => messageOf(count + i)),
    )
  return count
}

/** How many instances and changes of an entity the gaps in a data folder tell of. */
function gapsOf(folder: string, id: string): number {
  const database = new BetterSqlite3(join(folder, 'selvedge.db'), { readonly: true })
  try {
    const rid = database.prepare<[string], number>('SELECT rid FROM entity WHERE id = ?').pluck().get(id)!
    return database.prepare<[number], number>('SELECT sum(count) FROM gap WHERE rid = ?').pluck().get(rid)!
  } finally {
    database.close()
  }
}

/** What is left of an entity and how much of it was let go, once nothing is let go between the two counts. */
async function countedAtRest(
  folder: string,
  id: string,
  countLeft: () => Promise<number>,
): Promise<{ left: number; lost: number }> {
  return vi.waitFor(async () => {
    const lost = gapsOf(folder, id)
    const left = await countLeft()
    expect(gapsOf(folder, id)).toBe(lost)
    return { left, lost }
  }, within)
}

describeAllowed(smallDiskObstacle(), 'a disk that fills', () => {
  const openDisk = (megabytes: number): SmallDisk => {
    const disk = openSmallDisk(megabytes)
    cleanups.push(() => disk.remove())
    return disk
  }

  it('costs the oldest history, and writing goes on: more comes in than the disk could hold', async () => {
    const disk = openDisk(24)
    const { gateway, client } = await start(disk.folder)
    expect(await create(client, 'a')).toBe(201)
    const device = await connectRaw(gateway.mqttPort, 'steady')
    const noteId = 'urn:ngsi-ld:Note:a'
    let patched = 0
    const write = async (): Promise<void> => {
      const text = { type: 'Property', value: randomBytes(60_000).toString('base64') }
      expect((await client.send('PATCH', `${path}/${noteId}/attrs`, { text })).status).toBe(204)
      patched++
    }
    const isOver = (): boolean => patched * 80_000 >= 40e6
    const published = publishUntil(device, isOver)
    // On a busy machine what makes room is a while in coming.
    while (!isOver()) await vi.waitFor(write, { interval: 100 })
    const acknowledged = await published
    device.end()
    const metrics = (await client.get('/metrics')).text
    expect(Number(/^selvedge_history_evicted_total (\d+)/m.exec(metrics)![1])).toBeGreaterThan(0)
    expect(gateway.logLines().map(({ event }) => event)).toContain('disk.tight')
    expect(gateway.logLines().filter(({ event }) => event === 'gateway.fault')).toEqual([])

    // Every acknowledged value is there, or a gap reports it.
    const counted =
      'timerel=after&timeAt=1970-01-01T00:00:00Z&options=aggregatedValues&aggrMethods=totalCount'
    const countOf = async (id: string, name: string, time: string): Promise<number> => {
      const query = `attrs=${encodeURIComponent(name)}&timeproperty=${time}&${counted}`
      const answer = await client.get(`/ngsi-ld/v1/temporal/entities/${id}?${query}`)
      return (answer.json() as Record<string, { totalCount: [[number]] }>)[name]!.totalCount[0][0]
    }
    const cellar = observationId('cellar:temperature')
    const observations = await countedAtRest(disk.folder, cellar, () => countOf(cellar, result, 'observedAt'))
    const texts = await countedAtRest(disk.folder, noteId, () => countOf(noteId, 'text', 'modifiedAt'))
    expect(observations.left + observations.lost).toBe(acknowledged)
    const creations = 1
    expect(texts.left + texts.lost).toBe(patched + creations)
  })

  it('also when large values come from several clients at once: room for upkeep is always left', async () => {
    const disk = openDisk(24)
    const { client } = await start(disk.folder)
    const ids = ['a', 'b', 'c', 'd']
    for (const id of ids) expect(await create(client, id)).toBe(201)
    let bytes = 0
    const write = async (id: string, size: number): Promise<void> => {
      const text = { type: 'Property', value: randomBytes((size * 3) / 4).toString('base64') }
      const { status } = await client.send('PATCH', `${path}/urn:ngsi-ld:Note:${id}/attrs`, { text })
      expect(status).toBe(204)
      bytes += size
    }
    const writeAll = async (id: string): Promise<void> => {
      for (let i = 0; bytes < 40e6; i++) {
        const size = 100_000 + ((i * 7) % 5) * 150_000
        await vi.waitFor(() => write(id, size), within)
      }
    }
    await Promise.all(ids.map(writeAll))
  })

  it('takes nothing more when nothing is left to give up, lets delete, and recovers with its reserve', async () => {
    const disk = openDisk(24)
    const { gateway, client } = await start(disk.folder)
    for (const id of ['a', 'b']) expect(await create(client, id)).toBe(201)
    for (const [at, body] of Object.entries(wishes))
      expect((await client.send('POST', `/ngsi-ld/v1/${at}`, body)).status).toBe(201)
    const reserve = join(disk.folder, 'reserve')
    await vi.waitFor(() => expect(existsSync(reserve)).toBe(true), within)
    // What it gives up as the disk fills would be filled, too.
    process.kill(gateway.pid, 'SIGSTOP')
    disk.fill()
    process.kill(gateway.pid, 'SIGCONT')
    await gateway.event('disk.full')
    await gateway.event('disk.reserve-released')
    expect(await create(client, 'c')).toBe(507)
    expect((await bodyOf(client)).reasons).toEqual(['the disk is full'])
    expect((await client.send('DELETE', `${path}/urn:ngsi-ld:Note:a`, undefined)).status).toBe(204)
    for (const [at, { id }] of Object.entries(wishes))
      expect((await client.send('DELETE', `/ngsi-ld/v1/${at}/${id}`, undefined)).status).toBe(204)
    expect(existsSync(reserve)).toBe(false)
    disk.free()
    await vi.waitFor(async () => expect(await create(client, 'c')).toBe(201), within)
    await vi.waitFor(() => expect(existsSync(reserve)).toBe(true), within)
    await vi.waitFor(async () => expect((await bodyOf(client)).status).toBe('ready'), within)
  })

  it('ends a backup that is being made, and nothing of it stays', async () => {
    const disk = openDisk(24)
    const data = join(disk.folder, 'data')
    const { gateway, client } = await start(data)
    const text = { type: 'Property', value: randomBytes(400_000).toString('base64') }
    for (let i = 0; i < 8; i++)
      expect((await client.send('POST', path, { ...note(String(i)), text })).status).toBe(201)
    await gateway.stop()
    const folder = join(disk.folder, 'backups')
    const options = {
      dataFolder: data,
      folder,
      verify: true,
      version: '0',
      sparedBytes: 1_000_000,
      isGentle: false,
    }
    let looks = 0
    const backup = makeBackup(options, {
      clock: systemClock,
      onProgress: () => {
        if (++looks === 2) disk.fill()
      },
    })
    await expect(backup).rejects.toMatchObject({
      code: 'store.full',
      message: expect.stringContaining('was cancelled'),
    })
    expect(readdirSync(folder)).toEqual([])
    disk.free()
    expect(await makeBackup(options, { clock: systemClock, onProgress: () => undefined })).toMatchObject({
      path: expect.stringContaining(folder),
    })
  })

  it('also when it was full at the start, or the process was killed as it gave up its reserve', async () => {
    const disk = openDisk(24)
    const first = await start(disk.folder, { SELVEDGE_FAILPOINTS: 'reserve:released=kill' })
    expect(await create(first.client, 'a')).toBe(201)
    await first.gateway.event('disk.reserve-made')
    disk.fill()
    expect((await first.gateway.exited).signal).toBe('SIGKILL')
    const { client } = await start(disk.folder)
    expect((await client.get(`${path}/urn:ngsi-ld:Note:a`)).status).toBe(200)
    disk.free()
    await vi.waitFor(async () => expect(await create(client, 'b')).toBe(201), within)
  })

  it('holds all that was acknowledged when the process is killed again and again as it gives things up', async () => {
    const disk = openDisk(24)
    let { gateway, client } = await start(disk.folder)
    const kept: string[] = []
    let acknowledged = 0
    let sheds = 0
    expect(await create(client, 'a')).toBe(201)
    for (let round = 0; round < 4; round++) {
      // By its writes, since a busy machine is slower: the first fills the disk, the others are killed in the midst of making room.
      const writes = 130 - round * 25
      for (let n = 0; ; n++) {
        if (n === writes) setTimeout(() => void gateway.kill(), 50 * Math.random())
        const text = { type: 'Property', value: `${round}-${n} ${randomBytes(150_000).toString('base64')}` }
        const status = await client
          .send('PATCH', `${path}/urn:ngsi-ld:Note:a/attrs`, { text })
          .then((answer) => answer.status)
          .catch(() => 0)
        if (status === 0) break
        expect([204, 507]).toContain(status)
        if (status === 204) acknowledged++
        const id = `${round}-${n}`
        if (n % 10 === 0 && (await create(client, id).catch(() => 0)) === 201) kept.push(id)
      }
      expect((await gateway.exited).signal).toBe('SIGKILL')
      sheds += gateway
        .logLines()
        .filter(({ event }) => event === 'disk.tight' || event === 'disk.full').length
      ;({ gateway, client } = await start(disk.folder))
      for (const id of kept) expect((await client.get(`${path}/urn:ngsi-ld:Note:${id}`)).status).toBe(200)
      expect(gateway.logLines().filter(({ event }) => event === 'store.restored')).toEqual([])
    }
    expect(acknowledged).toBeGreaterThan(20)
    expect(sheds).toBeGreaterThan(0)
    // The history that is left and the gaps hold all that was acknowledged, and no more than was sent.
    const parameters =
      'attrs=text&timeproperty=modifiedAt&options=aggregatedValues&aggrMethods=totalCount&aggrPeriodDuration=PT0S'
    const { left, lost } = await countedAtRest(disk.folder, 'urn:ngsi-ld:Note:a', async () => {
      const history = await client.get(`/ngsi-ld/v1/temporal/entities/urn:ngsi-ld:Note:a?${parameters}`)
      const { text } = history.json() as { text?: { totalCount: [[number]] } }
      return text?.totalCount[0][0] ?? 0
    })
    await gateway.kill('SIGTERM')
    expect(lost).toBeGreaterThan(0)
    expect(left + lost).toBeGreaterThanOrEqual(acknowledged)
    // One in each round may have been on disk and not answered; the creation counts, too.
    expect(left + lost).toBeLessThanOrEqual(acknowledged + 5)
  })

  it('costs the backups but the newest before anything else', async () => {
    const disk = openDisk(32)
    const { gateway, client } = await start(disk.folder, { SELVEDGE_DISK_RESERVE_BYTES: '1000000' })
    expect(await create(client, 'a')).toBe(201)
    for (let i = 0; i < 2; i++)
      expect((await client.send('POST', '/selvedge/v1/backups', undefined)).status).toBe(201)
    disk.fill()
    expect(await gateway.event('disk.shed')).toMatchObject({ backups: 1 })
    const left = (await client.get('/selvedge/v1/backups')).json() as { backups: unknown[] }
    expect(left.backups).toHaveLength(1)
  })
})

it('a quota is kept to as a disk is', async () => {
  const quota = 16 * 1024 * 1024
  const { gateway, client } = await start(undefined, { SELVEDGE_DISK_QUOTA_BYTES: String(quota) })
  let status = 0
  for (let n = 0; n < 400 && status !== 507; n++) {
    const value = randomBytes(90_000).toString('base64')
    const body = { ...note(`big${n}`), text: { type: 'Property', value } }
    status = (await client.send('POST', path, body)).status
  }
  expect(status).toBe(507)
  expect(await gateway.event('disk.full')).toMatchObject({ quotaBytes: quota })
  expect((await client.send('DELETE', `${path}/urn:ngsi-ld:Note:big0`, undefined)).status).toBe(204)
})

describeAllowed(failingDiskObstacle(), 'a disk that answers with EIO', () => {
  it('ends nothing: writes are refused, QoS 1 is held, and all goes on when it is well', async () => {
    const disk = makeFailingDisk('selvedge.db')
    cleanups.push(() => disk.remove())
    const { gateway, client } = await start(undefined, disk.env)
    expect(await create(client, 'a')).toBe(201)
    disk.fail()
    expect(await create(client, 'b')).toBe(503)
    expect(await gateway.event('store.unwritable')).toMatchObject({
      code: expect.stringMatching(/^SQLITE_IOERR/),
    })
    expect((await bodyOf(client)).reasons).toEqual(['the disk fails'])
    expect((await client.get(`${path}/urn:ngsi-ld:Note:a`)).status).toBe(200)
    const device = await connectRaw(gateway.mqttPort, 'held')
    const payload = reading('cellar:temperature', 20, 1_700_000_000)
    device.send(publishPacket('senml/x', payload, { qos: 1, messageId: 7 }))
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(await isAlive(gateway)).toBe(true)
    disk.heal()
    expect(await device.next()).toMatchObject({ cmd: 'puback', messageId: 7 })
    device.end()
    await vi.waitFor(async () => expect(await create(client, 'b')).toBe(201), within)
    expect((await bodyOf(client)).status).toBe('ready')
    await gateway.kill()
    const again = await start(gateway.dataFolder)
    expect((await again.client.get(`${path}/urn:ngsi-ld:Note:b`)).status).toBe(200)
  })
})
