/**
 * The WAL of a plugin's file stays bounded, whatever the plugin writes, and the main thread never checkpoints
 * it.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { endLog } from '#store/file/copy-back.ts'
import { openPluginFile, type PluginFile } from '#store/plugins/plugin-file.ts'
import type { CopyBackFile } from '#store/plugins/plugin-log.ts'
import type { Writer } from '#store/writer/writer.ts'
import { immortalWriter, temporaryFolder } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'

const pageBytes = 4096
/** Duration of a flush on a busy disk, ms. */
const patience = 10_000
const tables = ['CREATE TABLE note (i INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT']

let temporary: ReturnType<typeof temporaryFolder>
let writer: Writer
let file: PluginFile | undefined
beforeEach(() => {
  temporary = temporaryFolder()
  writer = immortalWriter()
  setLimit('pluginWalPages', 50)
  setLimit('walCheckMs', 0)
})
afterEach(async () => {
  restoreLimits()
  await file?.close()
  file = undefined
  await writer.end()
  temporary.remove()
})

const path = (): string => join(temporary.folder, 'plugin.db')
const logBytes = (): number => statSync(`${path()}-wal`).size
const open = (copyBack: CopyBackFile = writer.copyBack): PluginFile => {
  file = openPluginFile(path(), tables, copyBack)
  return file
}

/** Writes about a page. */
function writing(database: PluginFile): () => void {
  const insert = database.prepare('INSERT INTO note (text) VALUES (?)')
  return database.transaction(() => void insert.run('x'.repeat(pageBytes)))
}

it('is checkpointed during long-running work, which waits while it is too long', async () => {
  const write = writing(open())
  let longest = 0
  for (let i = 0; i < 1000; i++) {
    write()
    longest = Math.max(longest, logBytes())
    await file!.rest()
  }
  // Each transaction writes some pages; without checkpoints the WAL would have thousands.
  expect(longest).toBeLessThan(4 * limits.pluginWalPages.value * pageBytes)
  const { c } = file!.prepare('SELECT count(*) AS c FROM note').get() as { c: number }
  expect(c).toBe(1000)
})

it('is checkpointed when statements run without a transaction', async () => {
  setLimit('pluginWalCheckMs', 5)
  const insert = open().prepare('INSERT INTO note (text) VALUES (?)')
  for (let i = 0; i < 200; i++) insert.run('x'.repeat(pageBytes))
  await vi.waitFor(() => expect(logBytes()).toBeLessThan(10 * pageBytes), patience)
  const { c } = file!.prepare('SELECT count(*) AS c FROM note').get() as { c: number }
  expect(c).toBe(200)
})

it('is truncated when all of it is copied, and later writes are present', async () => {
  const write = writing(open())
  for (let i = 0; i < 60; i++) write()
  await vi.waitFor(() => expect(logBytes()).toBeLessThan(10 * pageBytes), patience)
  write()
  await file!.close()
  file = undefined
  const database = new BetterSqlite3(path(), { readonly: true })
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
  expect(database.prepare('SELECT count(*) FROM note').pluck().get()).toBe(61)
  expect(database.pragma('user_version', { simple: true })).toBe(tables.length)
  database.close()
})

it('continues while another connection reads or writes, and restarts with one page', () => {
  const write = writing(open())
  for (let i = 0; i < 40; i++) write()
  const before = logBytes()
  const other = new BetterSqlite3(path())
  const used = (begin: string, end: string): boolean => {
    other.exec(begin)
    try {
      return endLog(path())
    } finally {
      other.exec(end)
    }
  }
  expect(used('BEGIN; SELECT count(*) FROM note', 'COMMIT')).toBe(false)
  expect(used('BEGIN IMMEDIATE', 'ROLLBACK')).toBe(false)
  expect(logBytes()).toBe(before)
  other.close()
  expect(endLog(path())).toBe(true)
  expect(logBytes()).toBeLessThan(2 * pageBytes)
  write()
  // Later writes follow in the same WAL: it did not restart again, which would flush its header.
  expect(logBytes()).toBeGreaterThan(2 * pageBytes)
  const { c } = file!.prepare('SELECT count(*) AS c FROM note').get() as { c: number }
  expect(c).toBe(41)
})

it('is not ended during a transaction, even one that has only read so far', () => {
  const database = open()
  const insert = database.prepare('INSERT INTO note (text) VALUES (?)')
  const count = database.prepare('SELECT count(*) AS c FROM note')
  const other = new BetterSqlite3(path(), { timeout: 0 })
  const run = database.transaction(() => {
    expect(count.get()).toEqual({ c: 0 })
    expect(() => other.exec('BEGIN IMMEDIATE')).toThrow('database is locked')
    insert.run('it')
  })
  run()
  other.close()
  expect(count.get()).toEqual({ c: 1 })
})

it('makes long-running work fail while the disk refuses, and recovers afterwards', async () => {
  setLimit('pluginWalRetryMs', 0)
  let isFull = true
  const write = writing(
    open((name) =>
      isFull ? Promise.reject(new GatewayError('store.full', 'no room')) : writer.copyBack(name),
    ),
  )
  for (let i = 0; i < 200; i++) write()
  await vi.waitFor(() => expect(file!.rest()).rejects.toMatchObject({ code: 'store.full' }), patience)
  isFull = false
  await vi.waitFor(async () => {
    await file!.rest()
    expect(logBytes()).toBeLessThan(10 * pageBytes)
  }, patience)
})

it('is not checkpointed into a file that is created again meanwhile', async () => {
  const write = writing(open())
  for (let i = 0; i < 100; i++) write()
  await file!.reset()
  const again = writing(file!)
  again()
  const { c } = file!.prepare('SELECT count(*) AS c FROM note').get() as { c: number }
  expect(c).toBe(1)
})
