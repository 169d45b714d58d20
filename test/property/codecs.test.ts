/**
 * Codecs of the store: a log blob or a chunk decodes bit for bit to its input, and regular decimal streams
 * use less than four bytes an observation at rest.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compactNumbers, createNumberReader, decodeChunk, encodeChunk } from '#store/chunks/chunk-codec.ts'
import { slotOf } from '#store/chunks/chunk-key.ts'
import { decodeObservations, encodeObservations } from '#store/chunks/observation-blob.ts'
import { createByteReader, createByteWriter } from '#store/chunks/varint.ts'

const number = fc.oneof(
  fc.double({ noNaN: true }),
  fc.integer({ min: -100_000, max: 100_000 }).map((integer) => integer / 100),
  fc.constantFrom(0, -0, 1e300, -1e-300, 2 ** 53, 0.1 + 0.2, Number.MAX_VALUE, Number.MIN_VALUE, Infinity),
)
const time = fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 })
const json = fc.oneof(fc.string(), fc.boolean(), fc.constant(null), fc.array(fc.integer()))

test('signed and unsigned integers up to 2^52 survive', () => {
  fc.assert(
    fc.property(fc.array(fc.maxSafeInteger()), (integers) => {
      const writer = createByteWriter(1)
      const halves = integers.map((integer) => Math.trunc(integer / 2))
      for (const integer of halves) writer.signed(integer)
      const reader = createByteReader(writer.finish())
      expect(halves.map(() => reader.signed() + 0)).toEqual(halves.map((half) => half + 0))
    }),
  )
})

test('sums of integers equal sums one by one, and skipped values do not affect them', () => {
  const halves = fc.array(fc.maxSafeInteger().map((integer) => Math.trunc(integer / 1024)))
  fc.assert(
    fc.property(halves, halves, (passed, integers) => {
      const writer = createByteWriter(1)
      for (const integer of [...passed, ...integers]) writer.signed(integer)
      writer.byte(42)
      const reader = createByteReader(writer.finish())
      const sums = new Float64Array(integers.length)
      reader.skip(passed.length)
      reader.sums(sums)
      let sum = 0
      expect(Array.from(sums)).toEqual(integers.map((integer) => (sum += integer)))
      expect(reader.byte()).toBe(42)
      expect(() => reader.sums(new Float64Array(1))).toThrow(/is truncated/)
    }),
  )
})

test('a log blob decodes to its observations', () => {
  const observation = fc.tuple(fc.integer({ min: 0, max: 8_000_000 }), time, fc.oneof(number, json))
  fc.assert(
    fc.property(fc.array(observation, { maxLength: 200 }), (list) => {
      const triples = Float64Array.from(
        list.flatMap(([stream, at, value]) => [stream, at, typeof value === 'number' ? value : Number.NaN]),
      )
      const others = list.flatMap(([, , value], i): [number, never][] =>
        typeof value === 'number' ? [] : [[i, value as never]],
      )
      const back = decodeObservations(encodeObservations({ triples, others }))
      expect(back.triples).toEqual(triples)
      expect(back.others).toEqual(others)
    }),
  )
})

test('a chunk decodes to its instances', () => {
  const instance = fc.tuple(time, fc.integer({ min: 0, max: 100_000 }))
  const readNumbers = createNumberReader()
  fc.assert(
    fc.property(
      fc.array(instance, { minLength: 1, maxLength: 300 }),
      fc.oneof(fc.constant(number), fc.constant(fc.oneof(number.filter(Number.isFinite), json))),
      fc.gen(),
      (instances, kind, gen) => {
        const sorted = instances.toSorted((a, b) => a[0] - b[0])
        const values = sorted.map(() => gen(() => kind))
        const times = Float64Array.from(sorted, ([at]) => at)
        const modified = Float64Array.from(sorted, ([at, delay]) => at + delay)
        const chunk = encodeChunk({ times, modified, values: values as never, shapes: ['{}'] })
        const back = decodeChunk(chunk)
        expect(back.times).toEqual(times)
        expect(back.modified).toEqual(modified)
        const given = values.map((value) =>
          Object.is(value, -0) && !values.every((v) => typeof v === 'number') ? 0 : value,
        )
        expect(Array.from(back.values as ArrayLike<unknown>)).toEqual(given)
        const numbers = back.values instanceof Float64Array ? { times, values: back.values } : undefined
        const compact = compactNumbers(chunk)
        expect(compact && readNumbers(compact)).toEqual(numbers)
      },
    ),
  )
})

test('regular decimals use four bytes each in memory, and decode bit for bit', () => {
  const readNumbers = createNumberReader()
  fc.assert(
    fc.property(
      fc.integer({ min: -1e12, max: 1e12 }),
      fc.integer({ min: 1, max: 1e7 }),
      fc.array(fc.integer({ min: -100_000, max: 100_000 }), { minLength: 2, maxLength: 300 }),
      (first, step, cents) => {
        const times = Float64Array.from(cents, (_, i) => first + i * step)
        const values = Float64Array.from(cents, (cent) => cent / 100)
        const compact = compactNumbers(encodeChunk({ times, modified: times, values, shapes: ['{}'] }))!
        expect(compact.bytes).toBe(cents.length * 4)
        expect(readNumbers(compact)).toEqual({ times, values })
      },
    ),
  )
})

test('numbers of very different magnitudes in one chunk decode bit for bit', () => {
  const unlike = fc.oneof(
    fc.constantFrom(7e13, 70_368_744_177_663, 1e-6, 0.000_123, 3.123_456, 2 ** 45 + 0.5, -7e13),
    fc.tuple(fc.integer(), fc.integer({ min: -8, max: 14 })).map(([digits, power]) => digits * 10 ** power),
  )
  fc.assert(
    fc.property(fc.array(unlike, { minLength: 1, maxLength: 6 }), (list) => {
      const values = Float64Array.from(list)
      const times = values.map((_, i) => i * 1000)
      expect(decodeChunk(encodeChunk({ times, modified: times, values, shapes: ['{}'] })).values).toEqual(
        values,
      )
    }),
    { numRuns: 1000 },
  )
})

test('a regular decimal stream uses less than four bytes an observation', () => {
  let seed = 1
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const times = Float64Array.from({ length: 1024 }, (_, i) => 1_760_000_000_000 + i * 1000)
  const modified = times.map((at) => at + 20 + Math.floor(random() * 50))
  let level = 21
  const values = times.map(() => {
    level += random() - 0.5
    return Math.round(level * 100) / 100
  })
  const chunk = encodeChunk({ times, modified, values, shapes: ['{"type":"Property"}'] })
  expect(chunk.codec).toBe(1)
  expect(chunk.body.length / 1024).toBeLessThan(4)
  expect(decodeChunk(chunk).values).toEqual(values)
})

test('slots fit the key for every DateTime', () => {
  expect(slotOf(-62_167_219_200_000)).toBe(0)
  expect(slotOf(253_402_300_799_999)).toBeLessThan(2 ** 41)
})
