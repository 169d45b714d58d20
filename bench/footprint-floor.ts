/**
 * The floor of memory and start: the libraries of the gateway in a process that does nothing with them. Hono answers
 * one route, mqtt-packet reads what comes to a port, a worker thread holds a database. Bundled before it runs, as the gateway is. Prints its
 * HTTP port.
 */
import { mkdtempSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { serve } from '@hono/node-server'
import BetterSqlite3 from 'better-sqlite3'
import { Hono } from 'hono'
import { parser } from 'mqtt-packet'

if (isMainThread) {
  const file = join(
    process.env['SELVEDGE_DATA'] ?? mkdtempSync(join(tmpdir(), 'selvedge-floor-')),
    'floor.db',
  )
  const worker = new Worker(new URL(import.meta.url), { workerData: file })
  await new Promise((resolve) => worker.once('message', resolve))
  const database = new BetterSqlite3(file, { readonly: true })
  const read = database.prepare('SELECT v FROM t WHERE k = ?').pluck()
  const mqtt = createServer((socket) => {
    const reader = parser()
    socket.on('data', (bytes) => reader.parse(bytes))
  })
  await new Promise<void>((resolve) => mqtt.listen(0, '127.0.0.1', resolve))
  const app = new Hono()
  app.get('/', (c) => c.body(read.get(1) as string))
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => {
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
  })
  process.once('SIGTERM', () => process.exit(0))
} else {
  const { parentPort } = await import('node:worker_threads')
  const database = new BetterSqlite3(workerData as string)
  database.pragma('journal_mode = WAL')
  database.exec("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'one')")
  parentPort!.postMessage('open')
  parentPort!.on('message', () => database.close())
}
