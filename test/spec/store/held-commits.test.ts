/**
 * A plugin's file may hold commits: its own queries find held data, other connections find it after the
 * commit, and a kill or a full disk leaves the file as it was at the last commit.
 */
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { endLog } from '#store/file/copy-back.ts'
import { openPluginFile, type PluginFile } from '#store/plugins/plugin-file.ts'
import { temporaryFolder } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'

const tables = ['CREATE TABLE note (text TEXT NOT NULL) STRICT']

let temporary: ReturnType<typeof temporaryFolder>
let file: PluginFile
let losses: number
beforeEach(() => {
  temporary = temporaryFolder()
  losses = 0
  setLimit('pluginHoldMs', 3_600_000)
})
afterEach(async () => {
  restoreLimits()
  await file.close()
  temporary.remove()
})

const path = (): string => join(temporary.folder, 'plugin.db')

function open(): (text: string) => void {
  file = openPluginFile(path(), tables, async () => endLog(path()))
  file.holdCommits(() => losses++)
  const insert = file.prepare('INSERT INTO note VALUES (?)')
  return file.transaction((text: string) => {
    insert.run(text)
    if (text === 'refused') throw new Error('refused')
  })
}

const count = (): unknown => file.prepare('SELECT count(*) AS n FROM note').get()

/** What another connection finds, and a process that starts after a kill. */
function committed(): number {
  const other = new BetterSqlite3(path(), { readonly: true })
  try {
    return other.prepare('SELECT count(*) FROM note').pluck().get() as number
  } finally {
    other.close()
  }
}

it('shows held data to its own queries and commits it on request', () => {
  const write = open()
  write('a')
  write('b')
  expect(count()).toEqual({ n: 2 })
  expect(committed()).toBe(0)
  file.commit()
  expect(committed()).toBe(2)
})

it('commits by itself after the interval', async () => {
  setLimit('pluginHoldMs', 20)
  const write = open()
  write('a')
  await vi.waitFor(() => expect(committed()).toBe(1), 25_000)
})

it('commits when the WAL is long, whatever the interval', () => {
  setLimit('pluginWalPages', 10)
  const write = open()
  for (let i = 0; i < 2000; i++) write('x'.repeat(4096))
  expect(committed()).toBeGreaterThan(0)
})

it('rolls back a failed transaction alone', () => {
  const write = open()
  write('a')
  expect(() => write('refused')).toThrow('refused')
  expect(count()).toEqual({ n: 1 })
  file.commit()
  expect(committed()).toBe(1)
  expect(losses).toBe(0)
})

it('commits what is held when it closes', async () => {
  open()('a')
  await file.close()
  expect(committed()).toBe(1)
  open()
})

it('reports what a full disk took away, and goes on from the last commit', async () => {
  const write = open()
  write('kept')
  file.commit()
  write('lost')
  file.prepare('PRAGMA max_page_count = 10').get()
  expect(() => {
    for (let i = 0; i < 100; i++) write('x'.repeat(4096))
  }).toThrow('full')
  await vi.waitFor(() => expect(losses).toBe(1), 25_000)
  expect(count()).toEqual({ n: 1 })
  file.prepare('PRAGMA max_page_count = 1000').get()
  write('again')
  file.commit()
  expect(committed()).toBe(2)
})
