/** Detection of damaged databases; an empty database never replaces one. */
import {
  closeSync,
  mkdirSync,
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
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { markVersion } from '#config/load/version-mark.ts'
import { makeBackup } from '#store/backup/backup.ts'
import { migrate, openReader, openWriter } from '#store/file/database.ts'
import { refusal } from '#test/kit/refusal.ts'
import { createRepair, type Repair } from './repair.ts'

let data: string
let events: string[]
const file = (): string => join(data, 'selvedge.db')
const mending = (isAutomatic = true): Repair =>
  createRepair(
    {
      clock: systemClock,
      log: createLog({
        level: 'info',
        clock: systemClock,
        write: (line) => events.push((JSON.parse(line) as { event: string }).event),
      }),
    },
    { dataFolder: data, backupFolder: join(data, 'backups'), isAutomatic },
  )
const backup = () =>
  makeBackup(
    {
      dataFolder: data,
      folder: join(data, 'backups'),
      verify: true,
      version: '1.0.0',
      sparedBytes: 0,
      isGentle: false,
    },
    { clock: systemClock, onProgress: () => undefined },
  )
const note = (value: string): void => {
  const database = openWriter(file(), 'NORMAL')
  database.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES ('note', ?)").run(value)
  database.close()
}
const noted = (): unknown => {
  const database = openReader(file())
  try {
    return database.prepare("SELECT value FROM meta WHERE key = 'note'").pluck().get()
  } finally {
    database.close()
  }
}
/** Overwrites a file from a position on. */
const spoil = (from: number): void => {
  const descriptor = openSync(file(), 'r+')
  for (let at = from; at < statSync(file()).size; at += 4096)
    writeSync(descriptor, 'Dear diary, '.repeat(99), at)
  closeSync(descriptor)
}

const damages: readonly (readonly [string, () => void])[] = [
  ['is full of something else', () => spoil(4096)],
  ['has no beginning', () => spoil(0)],
  ['is empty', () => truncateSync(file(), 0)],
  ['ends too early', () => truncateSync(file(), 20_480)],
  ['was deleted', () => rmSync(file())],
  [
    'is another one without anything in it',
    () => {
      rmSync(file())
      openWriter(file(), 'NORMAL').close()
    },
  ],
]

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'selvedge-mending-'))
  events = []
  migrate(file())
  markVersion(data)
  note('before')
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

describe('a database that', () => {
  it.each(damages)('%s is replaced by the newest backup', async (_, damage) => {
    await backup()
    note('after')
    damage()
    mending().mend('', file())
    expect(noted()).toBe('before')
    expect(events).toEqual(['store.restored'])
    mending().mend('', file())
    expect(events).toEqual(['store.restored'])
  })

  it.each(damages)('%s stays closed without a backup, however often it is tried', (_, damage) => {
    damage()
    for (let i = 0; i < 2; i++) expect(refusal(() => mending().mend('', file()))).toMatch(/^store.corrupt/)
  })
})

it('an intact database stays unchanged, and one that never existed is not expected', () => {
  mending().mend('', file())
  mending().mend('barn', join(data, 'tenants', 'barn.db'))
  expect(events).toEqual([])
  expect(noted()).toBe('before')
})

it('a missing tenant that a backup contains is restored, unless it was removed on purpose', async () => {
  const barn = join(data, 'tenants', 'barn.db')
  mkdirSync(join(data, 'tenants'))
  migrate(barn)
  expect(mending().expected()).toEqual([])
  await backup()
  expect(mending().expected()).toEqual(['barn'])
  for (const ending of ['', '-wal', '-shm']) rmSync(barn + ending, { force: true })
  expect(refusal(() => mending(false).mend('barn', barn))).toMatch(/^store.corrupt/)
  mending().mend('barn', barn)
  expect(events).toEqual(['store.restored'])
  expect(statSync(barn).size).toBeGreaterThan(0)

  for (const ending of ['', '-wal', '-shm']) rmSync(barn + ending, { force: true })
  writeFileSync(`${barn}.removed`, '')
  expect(mending().expected()).toEqual([])
  mending().mend('barn', barn)
  expect(events).toEqual(['store.restored'])
  // A re-created tenant is expected again.
  migrate(barn)
  mending().mend('barn', barn)
  expect(mending().expected()).toEqual(['barn'])
})

it('a damaged backup is skipped in favour of an older one', async () => {
  await backup()
  note('later')
  const { path } = await backup()
  writeFileSync(join(path, 'selvedge.db'), 'Dear diary')
  spoil(0)
  mending().mend('', file())
  expect(noted()).toBe('before')
  expect(events).toEqual(['backup.unusable', 'store.restored'])
})

it('backups of another gateway are not used', async () => {
  await backup()
  writeFileSync(join(data, 'gateway-id'), '0123456789abcdef\n')
  spoil(0)
  expect(refusal(() => mending().mend('', file()))).toMatch(/^store.corrupt/)
})

it('the last two damaged databases are kept', async () => {
  await backup()
  for (let i = 0; i < 4; i++) {
    spoil(0)
    mending().mend('', file())
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  expect(readdirSync(data).filter((name) => name.includes('.damaged-'))).toHaveLength(2)
})

it('a database found damaged while open is fully checked by the next start', async () => {
  expect(mending().suspect('', file())).toBe(false)
  await backup()
  expect(mending(false).suspect('', file())).toBe(false)
  expect(mending().suspect('', file())).toBe(true)
  mending().mend('', file())
  expect(events).toEqual([])
  expect(readdirSync(data)).not.toContain('selvedge.db.suspect')
})
