/**
 * Damaged databases: the newest verified backup replaces the database, and the missing time is reported.
 * Without a backup the tenant stays closed. An empty database never replaces an existing one, and other
 * tenants continue.
 */
import {
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, runSelvedge, startGatewayProcess, startSelvedge } from '#test/kit/process.ts'

const entities = '/ngsi-ld/v1/entities'
const barn = { 'ngsild-tenant': 'barn' }
const furnished = mkdtempSync(join(tmpdir(), 'selvedge-damage-'))
let folder: string
let data: string
const running: GatewayProcess[] = []

const start = async (env: Record<string, string> = {}): Promise<HttpClient & { gateway: GatewayProcess }> => {
  const gateway = await startGatewayProcess({ dataFolder: data, env })
  running.push(gateway)
  return { ...httpClient(gateway.httpUrl), gateway }
}
const refusedStart = () =>
  runSelvedge(['run', '--http-port', '0', '--mqtt-port', 'off'], {
    env: { SELVEDGE_DATA: data },
    cwd: tmpdir(),
  })
const note = (id: string): object => ({ id: `urn:ngsi-ld:Note:${id}`, type: 'Note' })
const has = async (client: HttpClient, id: string, headers = {}): Promise<boolean> =>
  (await client.get(`${entities}/urn:ngsi-ld:Note:${id}`, headers)).status === 200
const file = (name: string): string => join(data, name)
/** Overwrites pages with letters. */
const spoil = (name: string): void => {
  const descriptor = openSync(file(name), 'r+')
  const size = statSync(file(name)).size
  for (let at = 4096; at < size; at += 4096) writeSync(descriptor, 'Dear diary, '.repeat(200), at)
  closeSync(descriptor)
}
const removeBackups = (): void => rmSync(file('backups'), { recursive: true })

beforeAll(async () => {
  const gateway = await startGatewayProcess({ dataFolder: furnished })
  const client = httpClient(gateway.httpUrl)
  await client.send('POST', entities, note('before'))
  await client.send('POST', entities, note('before'), barn)
  expect((await client.send('POST', '/selvedge/v1/backups', undefined)).status).toBe(201)
  await client.send('POST', entities, note('after'))
  await client.send('POST', entities, note('after'), barn)
  await gateway.stop()
})
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-damage-'))
  data = join(folder, 'data')
  cpSync(furnished, data, { recursive: true })
})
afterEach(async () => {
  for (const gateway of running.splice(0)) await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})
afterAll(() => rmSync(furnished, { recursive: true }))

it('a tenant whose files are missing is restored from the backup, unless it was deleted explicitly', async () => {
  rmSync(file('tenants'), { recursive: true })
  const client = await start()
  expect(await has(client, 'before', barn)).toBe(true)
  expect(await has(client, 'after', barn)).toBe(false)
  expect(await has(client, 'after')).toBe(true)
  expect(await client.gateway.event('store.restored')).toMatchObject({ tenant: 'barn', damage: 'is missing' })
  await client.gateway.stop()

  for (const name of readdirSync(file('tenants'))) rmSync(file(`tenants/${name}`))
  writeFileSync(file('tenants/barn.db.removed'), '')
  const second = await start()
  expect((await second.get(`${entities}/urn:ngsi-ld:Note:before`, barn)).status).toBe(404)
  expect(existsSync(file('tenants/barn.db'))).toBe(false)
})

it('a damaged database is set aside, the backup replaces it, and the missing time is reported', async () => {
  spoil('selvedge.db')
  const client = await start()
  expect(await has(client, 'before')).toBe(true)
  expect(await has(client, 'after')).toBe(false)
  expect(await has(client, 'after', barn)).toBe(true)
  const told = await client.gateway.event('store.restored')
  expect(told).toMatchObject({ tenant: '', lostFrom: expect.any(String), lostTo: expect.any(String) })
  const health = (await client.get('/health/ready')).json() as { status: string; degraded: string[] }
  expect(health.status).toBe('degraded')
  expect(health.degraded.join()).toContain('was restored from a backup; data from')
  expect(gapReasons()).toEqual(['restore'])
})

it('without a backup a damaged default tenant prevents every start of the gateway', async () => {
  removeBackups()
  spoil('selvedge.db')
  for (let i = 0; i < 2; i++) {
    const { code, stderr } = await refusedStart()
    expect(code).toBe(1)
    expect(stderr).toContain('no verified backup')
  }
})

const gapReasons = (): unknown[] => {
  const database = new BetterSqlite3(file('selvedge.db'), { readonly: true })
  try {
    return database.prepare('SELECT reason FROM gap').pluck().all()
  } finally {
    database.close()
  }
}

it('a tenant without a backup stays closed, and the others continue', async () => {
  removeBackups()
  spoil('tenants/barn.db')
  const client = await start()
  expect(await has(client, 'after')).toBe(true)
  expect((await client.get(`${entities}?type=Note`, barn)).status).toBe(500)
  expect((await client.send('POST', entities, note('new'), barn)).status).toBe(500)
  expect((await client.get('/health/ready')).json()).toMatchObject({
    status: 'degraded',
    degraded: [expect.stringContaining('tenant barn is closed')],
  })
  expect((await client.get('/metrics')).text).toContain('selvedge_tenants_closed 1')
})

it('nothing is restored when that is switched off', async () => {
  spoil('tenants/barn.db')
  const client = await start({ SELVEDGE_BACKUP_RESTORE: 'false' })
  expect((await client.get(`${entities}?type=Note`, barn)).status).toBe(500)
  expect(readdirSync(file('tenants')).filter((name) => !/-(wal|shm)$/.test(name))).toEqual(['barn.db'])
})

it('a kill between setting the database aside and replacing it is recovered', async () => {
  spoil('selvedge.db')
  const cut = startSelvedge(['run', '--http-port', '0', '--mqtt-port', 'off'], {
    env: { SELVEDGE_DATA: data, SELVEDGE_FAILPOINTS: 'mend:between-names=kill' },
    cwd: tmpdir(),
  })
  expect((await cut.exited).signal).toBe('SIGKILL')
  expect(existsSync(file('selvedge.db'))).toBe(false)
  const client = await start()
  expect(await has(client, 'before')).toBe(true)
  expect(gapReasons()).toEqual(['restore'])
})

it('a truncated write-ahead log is reported, and the remaining data is kept', async () => {
  const { gateway } = await start()
  const client = httpClient(gateway.httpUrl)
  for (let n = 0; n < 20; n++) await client.send('POST', entities, note(String(n)))
  await gateway.kill()
  const wal = file('selvedge.db-wal')
  truncateSync(wal, statSync(wal).size / 2)
  const again = await start()
  expect(await has(again, 'after')).toBe(true)
  expect(await has(again, '19')).toBe(false)
  expect(await again.gateway.event('store.log-cut')).toMatchObject({ tenant: '' })
  expect(gapReasons()).toEqual(['restore'])
})

it('damage found while the database is open ends the process, and the next start restores', async () => {
  const { gateway } = await start()
  const client = httpClient(gateway.httpUrl)
  // Overwrites everything but the first pages while the gateway is running; its caches are intact.
  spoil('selvedge.db')
  let isOver = false
  void gateway.exited.then(() => {
    isOver = true
  })
  for (let n = 0; !isOver; n++) await client.send('POST', entities, note(`more${n}`)).catch(() => undefined)
  expect((await gateway.exited).code).toBe(70)
  const again = await start()
  expect(await has(again, 'before')).toBe(true)
  await again.gateway.event('store.restored')
})
