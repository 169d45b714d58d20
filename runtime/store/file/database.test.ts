/**
 * Opening a database file: the durability of commits, the rights of readers, and the refusal of unsuitable
 * files.
 */

import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isGatewayError } from '#base/register/errors.ts'
import { createSnapshot, type Database, migrate, openReader, openWriter } from './database.ts'
import { formatVersion, type Migration, migrations } from './database-schema.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-'))
  file = join(folder, 'tenant.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const pragma = (database: Database, name: string): unknown => database.pragma(name, { simple: true })

function codeOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    if (isGatewayError(error)) return error.code
    throw error
  }
  return 'accepted'
}

describe('a snapshot', () => {
  it('sees one committed state whatever is committed meanwhile, and ends even if a read fails', () => {
    migrate(file)
    const [writer, reader] = [openWriter(file, 'NORMAL'), openReader(file)]
    const snapshot = createSnapshot(reader)
    const count = (): unknown => reader.prepare('SELECT count(*) FROM meta').pluck().get()
    const put = (key: string): void => void writer.prepare('INSERT INTO meta VALUES (?, 1)').run(key)
    const before = count() as number
    const seen = snapshot(() => {
      const first = count()
      put('a')
      return [first, count()]
    })
    expect(seen).toEqual([before, before])
    expect(count()).toBe(before + 1)
    expect(() =>
      snapshot(() => {
        throw new TypeError('unreadable')
      }),
    ).toThrow('unreadable')
    put('b')
    expect(snapshot(count)).toBe(before + 2)
    reader.close()
    writer.close()
  })
})

describe('the connection that writes', () => {
  it('flushes every commit, and leaves checkpoints to the writer thread', () => {
    const database = openWriter(file, 'FULL')
    expect(pragma(database, 'synchronous')).toBe(2)
    expect(pragma(database, 'journal_mode')).toBe('wal')
    expect(pragma(database, 'wal_autocheckpoint')).toBe(0)
    database.close()
  })

  it('flushes less only when configured to', () => {
    for (const [name, number] of [
      ['NORMAL', 1],
      ['OFF', 0],
    ] as const) {
      const database = openWriter(file, name)
      expect(pragma(database, 'synchronous')).toBe(number)
      database.close()
    }
  })
})

describe('the connection that reads', () => {
  it('cannot write', () => {
    migrate(file)
    const database = openReader(file)
    expect(() => database.exec("INSERT INTO meta VALUES ('a', 1)")).toThrow(/readonly|read-only/)
    database.close()
  })

  it('does not create a file', () => {
    expect(codeOf(() => openReader(file))).toBe('store.failed')
    expect(existsSync(file)).toBe(false)
  })
})

describe('a file', () => {
  const old: readonly Migration[] = [
    { version: 1, title: 'one', sql: 'CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1)' },
  ]
  const two: Migration = { version: 2, title: 'two', sql: 'ALTER TABLE a ADD COLUMN y INTEGER DEFAULT 7' }
  const failing: Migration = { version: 3, title: 'three', sql: 'UPDATE a SET y = 8; SELECT * FROM nowhere' }
  const rows = (): unknown => {
    const database = new BetterSqlite3(file)
    try {
      return { version: pragma(database, 'user_version'), rows: database.prepare('SELECT * FROM a').all() }
    } finally {
      database.close()
    }
  }

  it('is created in the current format', () => {
    expect(migrate(file)).toEqual({ from: 0, to: formatVersion })
    expect(migrate(file)).toEqual({ from: formatVersion, to: formatVersion })
  })

  it('of an older format is migrated, keeping its data', () => {
    migrate(file, old)
    expect(migrate(file, [...old, two])).toEqual({ from: 1, to: 2 })
    expect(rows()).toEqual({ version: 2, rows: [{ x: 1, y: 7 }] })
    expect(existsSync(`${file}.format-1`)).toBe(false)
  })

  it('stays at the last successful step when one fails, with a copy of its previous state', () => {
    migrate(file, old)
    expect(codeOf(() => migrate(file, [...old, two, failing]))).toBe('store.failed')
    expect(rows()).toEqual({ version: 2, rows: [{ x: 1, y: 7 }] })
    const copy = new BetterSqlite3(`${file}.format-1`, { readonly: true })
    expect(copy.prepare('SELECT * FROM a').all()).toEqual([{ x: 1 }])
    copy.close()
    expect(migrate(file, [...old, two, { ...failing, sql: 'UPDATE a SET y = 8' }])).toEqual({
      from: 2,
      to: 3,
    })
    expect(rows()).toEqual({ version: 3, rows: [{ x: 1, y: 8 }] })
    expect(existsSync(`${file}.format-1`)).toBe(false)
  })

  it('that was migrated leaves no copy, even if the process ended before deleting it', () => {
    migrate(file, [...old, two])
    copyFileSync(file, `${file}.format-1`)
    copyFileSync(file, `${file}.format-1.kept`)
    expect(migrate(file, [...old, two])).toEqual({ from: 2, to: 2 })
    expect(existsSync(`${file}.format-1`)).toBe(false)
    expect(existsSync(`${file}.format-1.kept`)).toBe(true)
  })

  it('of a newer format is refused and not changed', () => {
    migrate(file, [...old, two])
    const before = readFileSync(file)
    expect(codeOf(() => migrate(file, old))).toBe('store.newer')
    expect(readFileSync(file).equals(before)).toBe(true)
  })

  it('that is not a database is refused and not changed', () => {
    writeFileSync(file, 'Dear diary, '.repeat(1000))
    expect(codeOf(() => migrate(file))).toBe('store.corrupt')
    expect(readFileSync(file, 'utf8')).toMatch(/^Dear diary/)
  })

  it('that cannot be opened is an error that names it', () => {
    expect(codeOf(() => migrate(folder))).toBe('store.failed')
    expect(codeOf(() => migrate(join(folder, 'nowhere', 'tenant.db')))).toBe('store.failed')
  })
})

it('migrations are numbered in order, without repetition', () => {
  const versions = migrations.map(({ version }) => version)
  expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b))
})
