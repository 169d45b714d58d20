/**
 * History corrected by clients, over chunks, tails and change records. The result is the original with every
 * correction applied; a window or the last instances are that part of the whole. Aggregates equal those of
 * the returned values one by one, for every way of summing.
 */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type AggregateMethod, aggregateMethods } from '#ngsi-ld/history/aggregate.ts'
import { type TimedInstance, type TimeProperty, timeOf } from '#ngsi-ld/history/temporal-query.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { parseDuration } from '#ngsi-ld/values/duration.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { immortalWriter, type OpenBroker, openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { runs } from '#test/kit/runs.ts'

const writer = immortalWriter()
afterAll(() => writer.end())

const epoch = Date.UTC(2026, 0, 1)
const at = (second: number): number => epoch + second * 1000
const all = 1_000_000
const streams = [
  ['level', ''],
  ['level', 'urn:d:1'],
  ['flow', ''],
] as const

// ---- Histories

const fold = fc.record({
  stream: fc.nat(2),
  /** Seconds since the last value of the stream. */
  gap: fc.integer({ min: 1, max: 30 }),
  values: fc.uniqueArray(fc.integer({ min: -6, max: 6 }), { minLength: 1, maxLength: 13 }),
  /** Number of instances that share a time. */
  together: fc.constantFrom(1, 1, 3, 6),
  isText: fc.boolean(),
})
type Fold = typeof fold extends fc.Arbitrary<infer T> ? T : never

const past = fc.record({ stream: fc.nat(2), second: fc.integer({ min: 0, max: 150 }), value: fc.nat(4) })
type Past = typeof past extends fc.Arbitrary<infer T> ? T : never

const correction = fc.record({
  /** Index of an existing instance. */
  which: fc.nat(1000),
  act: fc.constantFrom('remove', 'value', 'move', 'unobserve', 'redirect', 'erase' as const),
  second: fc.integer({ min: 0, max: 150 }),
  value: fc.integer({ min: 10, max: 13 }),
})
type Correction = typeof correction extends fc.Arbitrary<infer T> ? T : never

const query = fc.record({
  timeproperty: fc.constantFrom('observedAt', 'observedAt', 'modifiedAt', 'createdAt' as const),
  timerel: fc.constantFrom(undefined, 'before', 'after', 'between' as const),
  from: fc.nat(1000),
  width: fc.nat(500),
  lastN: fc.constantFrom(undefined, undefined, 1, 3, 20),
  duration: fc.constantFrom(undefined, 'PT7S', 'PT1M', 'P1M'),
  methods: fc.subarray([...aggregateMethods], { minLength: 1 }),
})
type AnyQuery = typeof query extends fc.Arbitrary<infer T> ? T : never

const propertyOf = (value: unknown, more: object): AttributeInstance =>
  ({ type: 'Property', value, ...more }) as AttributeInstance

/** Chunks as a folder would write them; units alternate, so that each fold creates a separate chunk. */
async function foldAll({ broker, main }: OpenBroker, id: string, folds: readonly Fold[]): Promise<void> {
  const first = ([, dataset]: readonly [string, string]) =>
    propertyOf(0, { observedAt: msToDateTime(epoch), ...(dataset === '' ? {} : { datasetId: dataset }) })
  await broker.create(
    { id, type: 'T', level: [first(streams[0]), first(streams[1])], flow: first(streams[2]) },
    'http',
  )
  const ends = streams.map(() => 0)
  for (const [i, { stream, gap, values, together, isText }] of folds.entries()) {
    const [name, dataset] = streams[stream]!
    const times = Float64Array.from(values, (_, n) => at(ends[stream]! + gap + Math.floor(n / together)))
    ends[stream] = ends[stream]! + gap + values.length
    await main.door.commit((stage) => {
      const { s } = main.streams.open(stage, main.documents.find(stage, id)!, name, dataset)
      stage.foldStream({
        s,
        folded: 0,
        times,
        modified: times.map((_, n) => stage.at - n * 1000),
        values: Float64Array.from(values, (value) => (isText ? Number.NaN : value)),
        others: isText ? values.map((value, n) => [n, `v${value}`] as const) : [],
        shapes: [
          JSON.stringify({
            type: 'Property',
            unitCode: `U${i % 2}`,
            ...(dataset === '' ? {} : { datasetId: dataset }),
          }),
        ],
      })
    })
  }
}

/**
 * One correction of the history; returns its effect on an instance. `homes` are the original datasets of the
 * instances.
 */
async function correct(
  { broker }: OpenBroker,
  id: string,
  { which, act, second, value }: Correction,
  returned: readonly (readonly [name: string, one: TimedInstance])[],
  homes: ReadonlyMap<string, string | undefined>,
): Promise<(name: string, one: TimedInstance) => Partial<TimedInstance> | undefined> {
  const chosen = returned[which % returned.length]
  if (chosen === undefined) return (_, one) => one
  const [name, { instance, instanceId, observedAt }] = chosen
  const { temporal } = broker
  if (act === 'erase') {
    const datasetId = homes.get(instanceId)
    if (which % 5 > 0) return (_, one) => one
    await temporal.removeAttribute(id, name, { datasetId, deleteAll: false, by: 'http' })
    return (other, one) => (other === name && homes.get(one.instanceId) === datasetId ? undefined : one)
  }
  if (act === 'remove') await temporal.removeInstance(id, name, instanceId)
  const moved = act === 'move' ? at(second) : observedAt
  const body = propertyOf(value, {
    ...(act === 'unobserve' || moved === undefined ? {} : { observedAt: msToDateTime(moved) }),
    datasetId: act === 'redirect' ? 'urn:d:other' : instance.datasetId,
  })
  if (act !== 'remove') await temporal.replaceInstance(id, name, instanceId, body)
  return (other, one) => {
    if (other !== name || one.instanceId !== instanceId) return one
    return act === 'remove' ? undefined : { instance: body, instanceId, createdAt: one.createdAt }
  }
}

// ---- State to compare

const listOf = (open: OpenBroker, id: string, query: object): (readonly [string, TimedInstance])[] => {
  const found = open.broker.history(id, { timeproperty: 'observedAt', limit: all, ...query })
  return [...(found?.attributes ?? [])].flatMap(([name, list]) => list.map((one) => [name, one] as const))
}

/** Identity of an instance, without the time of a correction. */
const faces = (returned: readonly (readonly [string, Partial<TimedInstance>])[]): string[] =>
  returned
    .map(([name, { instance, instanceId, createdAt }]) =>
      JSON.stringify([name, instanceId, createdAt, instance]),
    )
    .sort()

function windowOf(times: readonly number[], { timerel, from, width }: AnyQuery) {
  if (timerel === undefined) return { fits: () => true, query: {} }
  const sorted = times.toSorted((a, b) => a - b)
  const timeAtMs = sorted[from % sorted.length] ?? epoch
  const endTimeAtMs = (sorted[(from + width) % sorted.length] ?? epoch) + (width % 2)
  const query = { timerel, timeAtMs, ...(timerel === 'between' ? { endTimeAtMs } : {}) }
  const fits = (time: number): boolean =>
    timerel === 'before' ? time < timeAtMs : time >= timeAtMs && (timerel === 'after' || time < endTimeAtMs)
  return { fits, query }
}

function expectParts(open: OpenBroker, id: string, asked: AnyQuery): void {
  const { timeproperty, lastN } = asked
  const whole = listOf(open, id, { timeproperty })
  const time = ([, one]: readonly [string, TimedInstance]): number => timeOf(one, timeproperty)!
  const { fits, query } = windowOf(whole.map(time), asked)
  const wanted = whole.filter((one) => fits(time(one)))
  expect(faces(listOf(open, id, { timeproperty, ...query }))).toEqual(faces(wanted))
  for (const limit of [1, 4, 17])
    for (const [name, list] of Map.groupBy(wanted, ([name]) => name)) {
      const attrs = new Set([name])
      const read = (more: object): number[] =>
        listOf(open, id, { timeproperty, ...query, attrs, limit, ...more }).map(time)
      expectBeginning(read({}), list.map(time), limit)
      const last = list.map(time).slice(-(lastN ?? all))
      expectEnd(read({ lastN: lastN ?? all }), last, limit)
    }
}

/** The first times, and one beyond the first of all; if the end is unknown, more than the bound. */
function expectBeginning(found: readonly number[], times: readonly number[], limit: number): void {
  const beyond = times.findIndex((one) => one > times[0]!)
  const isStuck = found.length > limit && found.at(-1) === times[0]
  if (isStuck) expect(times.slice(0, found.length)).toEqual(found)
  else expect(found).toEqual(times.slice(0, times.length <= limit ? limit : Math.max(limit, beyond + 1)))
}

/** The last times, each complete; if the start is unknown, more than the bound of the last one. */
function expectEnd(found: readonly number[], times: readonly number[], limit: number): void {
  expect(times.slice(-found.length)).toEqual(found)
  if (times.length <= limit) expect(found).toEqual(times)
  else if (found.length > limit) expect(found[0]).toBe(times.at(-1))
  else {
    // One more would not fit.
    const next = times.at(-found.length - 1)!
    expect(next).toBeLessThan(found[0]!)
    expect(times.filter((one) => one >= next).length).toBeGreaterThan(limit)
  }
}

async function expectAggregates(open: OpenBroker, id: string, asked: AnyQuery): Promise<void> {
  const { timeproperty, lastN } = asked
  const times = listOf(open, id, { timeproperty }).map(([, one]) => timeOf(one, timeproperty)!)
  const { query } = windowOf(times, asked)
  const duration = asked.duration === undefined ? undefined : parseDuration(asked.duration)
  const methods = new Set(asked.methods)
  const window = { timeproperty, ...query, lastN }
  const found = await open.broker.temporal.aggregate(id, { ...window, limit: 1, methods, duration })
  const returned = listOf(open, id, window).filter(([, { deletedAt }]) => deletedAt === undefined)
  const expected = naively(returned, { ...asked, ...query })
  const rows = [...(found?.attributes ?? [])].flatMap(([name, lists]) =>
    lists.map((list) => {
      const { type, datasetId = '', ...sums } = list as { readonly type: string; readonly datasetId?: string }
      return [`${name} ${type} ${datasetId}`, sums] as const
    }),
  )
  expect(rounded(Object.fromEntries(rows))).toEqual(rounded(expected))
}

/** Sums in different orders differ in their last digits. */
const rounded = (sums: object): unknown =>
  JSON.parse(JSON.stringify(sums), (_, value) =>
    typeof value === 'number' ? Number(value.toFixed(6)) : value,
  )

interface Asked {
  readonly timeproperty: TimeProperty
  readonly timerel?: string | undefined
  readonly timeAtMs?: number
  readonly endTimeAtMs?: number
  readonly duration: string | undefined
  readonly methods: readonly AggregateMethod[]
}

/** Aggregates computed from every value. */
function naively(
  returned: readonly (readonly [string, TimedInstance])[],
  asked: Asked,
): Record<string, JsonObject> {
  const time = (one: TimedInstance): number => timeOf(one, asked.timeproperty)!
  const from = asked.timerel === 'before' ? undefined : asked.timeAtMs
  const start = from ?? Math.min(...returned.map(([, one]) => time(one)))
  const to = asked.timerel === 'before' ? asked.timeAtMs : asked.endTimeAtMs
  const groups = Map.groupBy(
    returned,
    ([name, { instance }]) => `${name} ${instance.type} ${instance.datasetId ?? ''}`,
  )
  const entries = [...groups].map(([key, group]) => {
    const periods = Map.groupBy(group, ([, one]) => borderOf(time(one), start, asked.duration))
    const sums: Record<string, JsonObject[string]> = {}
    for (const method of asked.methods) {
      const rows = [...periods]
        .toSorted(([a], [b]) => a - b)
        .flatMap(([begin, list]) => {
          const value = methodOf(
            method,
            list.map(([, { instance }]) => instance.value as number | string),
          )
          const last = Math.max(...list.map(([, one]) => time(one)))
          const end = asked.duration === undefined ? (to ?? last) : nextBorder(begin, asked.duration)
          return value === undefined ? [] : [[value, msToDateTime(begin), msToDateTime(end)]]
        })
      if (rows.length > 0) sums[method] = rows
    }
    return [key, sums] as const
  })
  return Object.fromEntries(entries)
}

const lengths: Readonly<Record<string, number>> = { PT7S: 7000, PT1M: 60_000 }

/** Months begin on the same day and time as the first one. */
function nextBorder(border: number, duration: string): number {
  const length = lengths[duration]
  return length === undefined
    ? new Date(border).setUTCMonth(new Date(border).getUTCMonth() + 1)
    : border + length
}

function borderOf(time: number, start: number, duration: string | undefined): number {
  let border = start
  if (duration === undefined) return border
  const length = lengths[duration]
  if (length !== undefined) return start + Math.floor((time - start) / length) * length
  while (nextBorder(border, duration) <= time) border = nextBorder(border, duration)
  return border
}

function methodOf(
  method: AggregateMethod,
  values: readonly (number | string)[],
): number | string | undefined {
  if (method === 'totalCount') return values.length
  if (method === 'distinctCount') return new Set(values).size
  const numbers = values.filter((value) => typeof value === 'number')
  if (numbers.length === 0) {
    const texts = (values as readonly string[]).toSorted()
    return method === 'min' ? texts[0] : method === 'max' ? texts.at(-1) : undefined
  }
  const total = (of: (value: number) => number): number => numbers.reduce((sum, value) => sum + of(value), 0)
  const mean = total((value) => value) / numbers.length
  switch (method) {
    case 'sum':
      return total((value) => value)
    case 'avg':
      return mean
    case 'min':
      return Math.min(...numbers)
    case 'max':
      return Math.max(...numbers)
    case 'stddev':
      return Math.sqrt(total((value) => (value - mean) ** 2) / numbers.length)
    case 'sumsq':
      return total((value) => value * value)
  }
}

let worlds = 0

const redirect: Correction = { which: 0, act: 'redirect', second: 0, value: 13 }

/** Two instances that become equal in a third dataset: a removal removes one of them. */
const twoMovedToOneDataset: [Fold[], Past[], boolean, Correction[], AnyQuery[]] = [
  [],
  [],
  false,
  [redirect, redirect, { ...redirect, act: 'remove' }],
  [],
]

test('corrected history is read, cut and aggregated like its instances one by one', async () => {
  const { folder, remove } = temporaryFolder()
  const open = await openBroker(folder, { writer })
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fold, { maxLength: 14 }),
        fc.array(past, { maxLength: 6 }),
        fc.boolean(),
        fc.array(correction, { maxLength: 6 }),
        fc.array(query, { minLength: 4, maxLength: 8 }),
        async (folds, tail, isUnfolded, corrections, queries) => {
          const id = `urn:x:${++worlds}`
          await foldAll(open, id, folds)
          for (const { stream, second, value } of tail) {
            const [name, dataset] = streams[stream]!
            const more = {
              observedAt: msToDateTime(at(second)),
              ...(dataset === '' ? {} : { datasetId: dataset }),
            }
            await open.broker.temporal.append(
              id,
              { types: undefined, attributes: new Map([[name, [propertyOf(value, more)]]]) },
              'http',
            )
          }
          if (!isUnfolded) await open.upkeep(31 * 60_000)
          const homes = new Map(
            listOf(open, id, { timeproperty: 'modifiedAt' }).map(([, { instanceId, instance }]) => [
              instanceId,
              instance.datasetId,
            ]),
          )
          for (const one of corrections) {
            const before = listOf(open, id, { timeproperty: 'modifiedAt' })
            const become = await correct(open, id, one, before, homes)
            const expected = before.flatMap(([name, returned]) => {
              const now = become(name, returned)
              return now === undefined ? [] : [[name, now] as const]
            })
            expect(faces(listOf(open, id, { timeproperty: 'modifiedAt' }))).toEqual(faces(expected))
          }
          for (const asked of queries) {
            expectParts(open, id, asked)
            await expectAggregates(open, id, asked)
          }
        },
      ),
      { numRuns: runs(40), examples: [twoMovedToOneDataset] },
    )
  } finally {
    await open.close()
    remove()
  }
})
