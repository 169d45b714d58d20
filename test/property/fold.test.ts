/**
 * The folder against a plain model, through the real SQLite: for any order of arriving instances, chunks
 * contain each instance exactly once, ordered, disjoint and within their limits, and their columns describe
 * their contents.
 */
import BetterSqlite3 from 'better-sqlite3'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { footprintOf } from '#base/process/footprint.ts'
import { decodeChunk } from '#store/chunks/chunk-codec.ts'
import { slotOf } from '#store/chunks/chunk-key.ts'
import type { SqlValue } from '#store/chunks/sql-value.ts'
import { migrations } from '#store/file/database-schema.ts'
import { decodeEntityChanges, isOpen } from '#store/history/entity-changes.ts'
import { foldEntity, foldStream } from '#store/history/fold.ts'
import { type ChunkRow, createHistory } from '#store/history/history-rows.ts'
import { type WriteRow, writeStatements } from '#store/writer/write-statements.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { runs } from '#test/kit/runs.ts'

setLimit('chunkObservations', 20)
setLimit('chunkPartialMin', 10)
setLimit('chunkBytesMax', 2000)
afterAll(restoreLimits)

function openHistory() {
  const database = new BetterSqlite3(':memory:')
  for (const { sql } of migrations) database.exec(sql)
  database.exec(`INSERT INTO stream (s, rid, name, dataset, shape) VALUES (7, 1, 1, '', '{}')`)
  const run = ([name, ...parameters]: WriteRow): void => {
    database.prepare<SqlValue[]>(writeStatements[name]).run(...parameters)
  }
  return { history: createHistory(database), run, close: () => database.close() }
}

type Value = number | string
type Instance = readonly [time: number, value: Value, shape: string]

function foldOf(instances: readonly Instance[], index: number) {
  const shapes = [...new Set(instances.map(([, , shape]) => shape))]
  return {
    s: 7,
    folded: index + 1,
    times: Float64Array.from(instances, ([time]) => time),
    modified: Float64Array.from(instances, ([time]) => time + index),
    values: Float64Array.from(instances, ([, value]) => (typeof value === 'number' ? value : Number.NaN)),
    others: instances.flatMap(([, value], i): [number, string][] =>
      typeof value === 'string' ? [[i, value]] : [],
    ),
    shapes,
    shapeOf: instances.map(([, , shape]) => shapes.indexOf(shape)),
  }
}

/** The columns of a chunk that describe its values. */
function expectStatistics(chunk: ChunkRow, values: readonly unknown[]): void {
  const numbers = values.filter((value) => typeof value === 'number')
  expect(chunk.count).toBe(values.length)
  if (chunk.codec === 3) {
    expect([chunk.min, chunk.max, chunk.sum, chunk.sumsq]).toEqual([null, null, null, null])
    return
  }
  expect(numbers).toHaveLength(values.length)
  expect(chunk.min).toBe(Math.min(...numbers))
  expect(chunk.max).toBe(Math.max(...numbers))
  expect(chunk.sum).toBeCloseTo(numbers.reduce((sum, value) => sum + value, 0))
  expect(chunk.sumsq).toBeCloseTo(numbers.reduce((sum, value) => sum + value * value, 0))
}

test('folding stores every instance once, in order, in disjoint chunks', () => {
  const instance: fc.Arbitrary<Instance> = fc.tuple(
    fc.oneof(
      fc.integer({ min: 0, max: 5000 }),
      fc.integer({ min: 0, max: 50 }).map((i) => i * 100_000),
    ),
    fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: 0, max: 5 }) },
      { weight: 1, arbitrary: fc.constantFrom('on', 'off', 'x'.repeat(700)) },
    ),
    fc.oneof(
      { weight: 8, arbitrary: fc.constant('{}') },
      { weight: 1, arbitrary: fc.constant('{"unitCode":"CEL"}') },
    ),
  )
  fc.assert(
    fc.property(fc.array(fc.array(instance, { minLength: 1, maxLength: 60 }), { maxLength: 8 }), (folds) => {
      const { history, run, close } = openHistory()
      const expected = new Map<string, readonly [modified: number, shape: string]>()
      folds.forEach((instances, index) => {
        foldStream(foldOf(instances, index), history, run)
        // The first instance of an identity remains.
        for (const [time, value, shape] of instances) {
          const key = `${time} ${value}`
          if (!expected.has(key)) expected.set(key, [time + index, shape])
        }
      })
      const found = new Map<string, readonly [modified: number, shape: string]>()
      let last: number | undefined
      for (const chunk of history.chunks(7, -1, 10_000_000)) {
        if (last !== undefined) expect(slotOf(chunk.t0)).toBeGreaterThan(slotOf(last))
        last = chunk.t1
        const { times, modified, values, shapes, shapeOf } = decodeChunk(chunk)
        expect([times[0], times.at(-1)]).toEqual([chunk.t0, chunk.t1])
        expect(times.every((time, i) => i === 0 || time >= times[i - 1]!)).toBe(true)
        expectStatistics(chunk, [...values])
        if (slotOf(chunk.t0) < slotOf(chunk.t1)) {
          const before = [...times].findLastIndex((time) => slotOf(time) < slotOf(chunk.t1))
          expect(before).toBeLessThan(limits.chunkObservations.value)
          const bytes = [...values]
            .slice(0, before)
            .reduce<number>((sum, value) => sum + footprintOf(value), 0)
          expect(bytes).toBeLessThan(limits.chunkBytesMax.value)
        }
        times.forEach((time, i) => {
          const key = `${time} ${values[i] as Value}`
          expect(found.has(key)).toBe(false)
          found.set(key, [modified[i]!, shapes[shapeOf?.[i] ?? 0]!])
        })
      }
      expect(found).toEqual(expected)
      if (folds.length > 0) expect(history.stream(7)?.folded).toBe(folds.length)
      close()
    }),
    { numRuns: runs(80) },
  )
})

test('ordered instances are packed unchanged: no instance, shape or slot is lost', () => {
  const steps = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 60 })
  const fold = fc.tuple(steps, fc.constantFrom('{}', '{"unitCode":"CEL"}'))
  fc.assert(
    fc.property(fc.array(fold, { minLength: 1, maxLength: 8 }), (folds) => {
      const { history, run, close } = openHistory()
      let time = 0
      const expected: Instance[] = []
      folds.forEach(([gaps, shape], index) => {
        const instances = gaps.map((gap): Instance => {
          time += gap
          return [time, time % 7, shape]
        })
        foldStream(foldOf(instances, index), history, run)
        expected.push(...instances)
      })
      const found: Instance[] = []
      for (const chunk of history.chunks(7, -1, 10_000_000)) {
        expect(slotOf(chunk.t0)).toBeGreaterThan(slotOf(found.at(-1)?.[0] ?? -10_000))
        const { times, values, shapes, shapeOf } = decodeChunk(chunk)
        for (const [i, at] of times.entries()) {
          found.push([at, values[i] as Value, shapes[shapeOf?.[i] ?? 0]!])
        }
      }
      expect(found).toEqual(expected)
      close()
    }),
    { numRuns: runs(80) },
  )
})

test('records of an entity stay in order, in parts that are neither many nor huge', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.string({ maxLength: 40 }), { minLength: 1, maxLength: 30 }), { maxLength: 12 }),
      (folds) => {
        const { history, run, close } = openHistory()
        let n = 0
        for (const texts of folds) {
          const numbers = texts.map((text) => {
            run(['log.change', ++n, n * 1000, 2, 3, JSON.stringify({ n, text })])
            return n
          })
          foldEntity({ rid: 3, numbers }, history, run)
        }
        const parts = history.entityChanges(3)
        const records = parts
          .flatMap(decodeEntityChanges)
          .map((text) => (JSON.parse(text) as { n: number }).n)
        expect(records).toEqual(Array.from({ length: n }, (_, i) => i + 1))
        expect(parts.length).toBeLessThanOrEqual(1 + n / 64)
        expect(parts.at(-1)?.n1 ?? 0).toBe(n)
        expect(parts.map(({ t0, n0 }) => t0 - n0 * 1000).every((apart) => apart === 0)).toBe(true)
        // A full part must be closed, or each fold would rewrite all of it.
        for (const part of parts.slice(0, -1)) expect(isOpen(part)).toBe(false)
        expect(parts.filter((part) => isOpen(part) && part.count >= 64)).toEqual([])
        close()
      },
    ),
    { numRuns: runs(30) },
  )
})
