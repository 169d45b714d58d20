/** A damaged index file that fails during a full read is reported, and the next start rebuilds the index. */
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, expect, it, vi } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { sensor } from './site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-damaged-'))
const file = join(folder, 'plugins', 'indexing.db')
const patience = { interval: 50 }
const pageBytes = 4096
const entities = 200
let gateway: GatewayInside | undefined
afterAll(async () => {
  await gateway?.close()
  rmSync(folder, { recursive: true, force: true })
})

async function start(): Promise<GatewayInside> {
  await gateway?.close()
  gateway = await startGatewayInside(folder)
  return gateway
}

async function isWhole(): Promise<void> {
  const answer = await gateway!.get('/indexing/ngsi-ld/v1/entities?type=Sensor&limit=0&count=true')
  expect(answer.headers['ngsild-results-count']).toBe(String(entities))
}

/** Damages pages that opening the file does not read, of an index that needs a full read. */
function damageEntities(): void {
  const database = new Database(file)
  database.exec('UPDATE broker SET position = NULL')
  const leaves = database.prepare("SELECT pageno FROM dbstat WHERE name = 'entry' AND pagetype = 'leaf'")
  const pages = leaves.pluck().all() as number[]
  database.close()
  const descriptor = openSync(file, 'r+')
  for (const page of pages)
    writeSync(descriptor, Buffer.alloc(pageBytes, 0xff), 0, pageBytes, (page - 1) * pageBytes)
  closeSync(descriptor)
}

it('is reported by health, set aside, and rebuilt', async () => {
  const first = await start()
  const all = Array.from({ length: entities }, (_, i) => sensor(i, [8, 50]))
  expect((await first.send('POST', '/ngsi-ld/v1/entityOperations/create', all)).status).toBe(201)
  await vi.waitFor(isWhole, patience)
  await first.close()
  gateway = undefined
  damageEntities()
  const second = await start()
  await vi.waitFor(
    async () => expect((await second.get('/health/ready')).text).toContain('indexing'),
    patience,
  )
  expect((await second.get('/indexing/api/health')).status).toBe(503)
  await vi.waitFor(() => expect(existsSync(`${file}.damaged`)).toBe(true), patience)
  await start()
  await vi.waitFor(isWhole, patience)
})
