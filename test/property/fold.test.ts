/**
 * The folder against a plain model: whatever order instances arrive in, chunks hold each exactly once, ordered and
 * disjoint, through the real SQLite.
 */
import BetterSqlite3 from 'better-sqlite3'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeChunk } from '#store/chunk-codec.ts'
import { foldStream } from '#store/fold.ts'
import { createHistory } from '#store/history.ts'
import { type Row, type SqlValue, writeStatements } from '#store/rows.ts'
import { migrations } from '#store/schema.ts'

function openHistory() {
  const database = new BetterSqlite3(':memory:')
  for (const { sql } of migrations) database.exec(sql)
  database.exec(`INSERT INTO stream (s, rid, name, dataset, shape) VALUES (7, 1, 1, '', '{}')`)
  const run = ([name, ...parameters]: Row): void => {
    database.prepare<SqlValue[]>(writeStatements[name]).run(...parameters)
  }
  return { history: createHistory(database), run, close: () => database.close() }
}

test('folding keeps every instance once, in order, in disjoint chunks', () => {
  const instance = fc.tuple(
    fc.oneof(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 0, max: 50 }).map((i) => i * 100_000)),
    fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constantFrom('on', 'off')),
    fc.constantFrom('{}', '{"unitCode":"CEL"}'),
  )
  fc.assert(
    fc.property(fc.array(fc.array(instance, { minLength: 1, maxLength: 60 }), { maxLength: 8 }), (folds) => {
      const { history, run, close } = openHistory()
      const expected = new Map<string, number>()
      folds.forEach((instances, index) => {
        const shapes = [...new Set(instances.map(([, , shape]) => shape))]
        foldStream(
          {
            s: 7,
            folded: index + 1,
            times: Float64Array.from(instances, ([time]) => time),
            modified: Float64Array.from(instances, ([time]) => time + index),
            values: Float64Array.from(instances, ([, value]) => (typeof value === 'number' ? value : Number.NaN)),
            others: instances.flatMap(([, value], i): [number, string][] => (typeof value === 'string' ? [[i, value]] : [])),
            shapes,
            shapeOf: instances.map(([, , shape]) => shapes.indexOf(shape)),
          },
          history,
          run,
        )
        for (const [time, value] of instances) expected.set(`${time} ${value}`, time)
      })
      const chunks = history.chunks(7, -1, 10_000_000)
      const found: string[] = []
      let end = -1
      for (const chunk of chunks) {
        expect(chunk.t0).toBeGreaterThan(end)
        end = chunk.t1
        const series = decodeChunk(chunk)
        series.times.forEach((time, i) => found.push(`${time} ${series.values[i]}`))
      }
      expect(found.toSorted()).toEqual([...expected.keys()].toSorted())
      if (folds.length > 0) expect(history.stream(7)?.folded).toBe(folds.length)
      close()
    }),
    { numRuns: 150 },
  )
})
