/**
 * Evictions of a gateway excuse exactly what a hub holds beyond them: no other attribute, time or number, and
 * nothing twice.
 */
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { migrate } from '#store/file/database.ts'
import { temporaryDatabase } from '#test/kit/door.ts'
import { type Forgone, readForgone } from './forgone.ts'

const [level, other, second] = ['level ', 'flow ', 'level urn:second']
let temporary: ReturnType<typeof temporaryDatabase>
beforeEach(() => {
  temporary = temporaryDatabase()
  migrate(temporary.file)
})
afterEach(() => temporary.remove())

/**
 * Of `urn:a`: three values of `level` at seconds 10 to 20, and two changes. Of `urn:gone`, which is deleted,
 * one value of `level`.
 */
function forgone(reason = 'size'): Forgone['isForgone'] {
  const database = new Database(temporary.file)
  const put = (table: string, row: Readonly<Record<string, string | number>>): void => {
    const places = Object.keys(row).map(() => '?')
    const columns = Object.keys(row).join()
    database.prepare(`INSERT INTO ${table} (${columns}) VALUES (${places.join()})`).run(...Object.values(row))
  }
  const gap = (s: number, rid: number, count: number, [t0, t1]: readonly [number, number]): void =>
    put('gap', { s, rid, name: s === 0 ? 0 : 1, t0, t1, count, at: 0, reason })
  put('name', { i: 1, text: 'level' })
  put('entity', { rid: 1, id: 'urn:a', n: 1, created: 0, modified: 0, sys: '{}', doc: '{}' })
  put('tombstone', { n: 2, id: 'urn:gone', rid: 2, at: 0, doc: '{}' })
  for (const rid of [1, 2]) put('stream', { s: rid, rid, name: 1, dataset: '', shape: '' })
  gap(1, 1, 3, [10_000, 20_000])
  gap(0, 1, 2, [0, 99_000])
  gap(2, 2, 1, [10_000, 20_000])
  database.close()
  return readForgone(temporary.file).isForgone
}

const at = (...seconds: number[]): string[] =>
  seconds.map((second) => `${new Date(second * 1000).toISOString()} {}`)

it.each([
  ['within a stream', 'urn:a', level, at(10, 15, 20), true],
  ['more than went of a stream and of changes', 'urn:a', level, at(10, 11, 12, 13, 14, 15), false],
  ['of another time, as many as changes', 'urn:a', level, at(10, 15, 20, 30, 50), true],
  ['of another time, more than changes', 'urn:a', level, at(30, 40, 50), false],
  ['of another attribute, as many as changes', 'urn:a', other, at(15, 16), true],
  ['of another attribute, more', 'urn:a', other, at(15, 16, 17), false],
  ['of another dataset, more', 'urn:a', second, at(15, 16, 17), false],
  ['of an entity that is gone', 'urn:gone', level, at(15), true],
  ['of an entity that is gone, of another time', 'urn:gone', level, at(21), false],
  ['of another entity', 'urn:b', level, at(15), false],
  ['twice', 'urn:a', level, at(15).map((text) => `${text} twice`), false],
])('%s', (_, id, key, more, expected) => expect(forgone()(id, key, more)).toBe(expected))

it('counts only evictions for lack of room', () => expect(forgone('age')('urn:a', level, at(15))).toBe(false))
