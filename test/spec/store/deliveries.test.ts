/**
 * The outbox as rows: the order and bounds of reads, and statements that use an index.
 */
import BetterSqlite3 from 'better-sqlite3'
import { beforeEach, describe, expect, it } from 'vitest'
import { migrations } from '#store/file/database-schema.ts'
import { createDeliveries, type Deliveries, deliveryWrites } from '#store/tables/delivery-rows.ts'

describe('the outbox', () => {
  let database: BetterSqlite3.Database
  let reads: Deliveries
  const write = (name: keyof typeof deliveryWrites, ...parameters: unknown[]) =>
    database.prepare(deliveryWrites[name]).run(...parameters)
  const enqueue = (d: number, endpoint: string, entity: string, body = '{}') =>
    write('delivery.insert', d, 1, endpoint, entity, 1000, null, null, null, null, body)

  beforeEach(() => {
    database = new BetterSqlite3(':memory:')
    for (const { sql } of migrations) database.exec(sql)
    reads = createDeliveries(database)
    for (let d = 1; d <= 20; d++) enqueue(d, d % 2 === 0 ? 'http://even/' : 'http://odd/', `urn:${d % 3}`)
  })

  it('is read per endpoint, in order, from a number on', () => {
    expect(reads.endpoints().sort()).toEqual(['http://even/', 'http://odd/'])
    const span = { endpoint: 'http://even/', after: 6, count: 3 }
    expect(reads.next(span, 1e9).map(({ d }) => d)).toEqual([8, 10, 12])
    expect(reads.heads(span)).toEqual([8, 10, 12].map((d) => ({ d, sub: 1, entity: `urn:${d % 3}` })))
    expect(reads.next({ ...span, after: 0 }, 3)).toHaveLength(2)
    expect(
      reads.nextOfPair({ ...span, after: 2 }, 18, { d: 2, sub: 1, entity: 'urn:2' }).map(({ d }) => d),
    ).toEqual([8, 14])
  })
  it('is counted without the deliveries about to be deleted', () => {
    expect(reads.backlog('http://odd/', [])).toEqual({ count: 10, last: 19 })
    expect(reads.backlog('http://odd/', [1, 2, 3, 99])).toEqual({ count: 8, last: 19 })
    expect(reads.backlog('http://none/', [])).toEqual({ count: 0, last: 0 })
  })
  it('is settled, deleted and redirected', () => {
    write('delivery.settle', JSON.stringify([1, 2, 3, 500]))
    expect(reads.backlog('http://odd/', []).count).toBe(8)
    write('delivery.redirect', 'http://even/', 'http://odd/', 1)
    expect(reads.backlog('http://even/', []).count).toBe(17)
    write('delivery.forget', 'http://even/', 1)
    expect(reads.endpoints()).toEqual([])
  })
  it('keeps the newest dead letters, and assigns no number twice while one exists', () => {
    for (let d = 1; d <= 8; d++)
      write('dead_letter.insert', d + 20, 1, 'http://odd/', 'urn:1', 1000, 2000, 'answered 400', '{}')
    write('dead_letter.trim', 5)
    expect(reads.deadLetters(2).map(({ d }) => d)).toEqual([28, 27])
    expect(reads.deadLetters(100, 27).map(({ d }) => d)).toEqual([26, 25, 24])
    expect(reads.last()).toBe(28)
  })
  it('keeps an observation as its stream, time and value', () => {
    write('delivery.insert', 21, 7, 'http://new/', 'urn:1', 1000, 5, 42, 999, '21.5', null)
    expect(reads.next({ endpoint: 'http://new/', after: 0, count: 1 }, 1)).toEqual([
      {
        d: 21,
        sub: 7,
        endpoint: 'http://new/',
        entity: 'urn:1',
        at: 1000,
        batch: 5,
        stream: 42,
        t: 999,
        value: '21.5',
        body: null,
      },
    ])
  })
})
