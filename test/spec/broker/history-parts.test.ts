/** Partial responses and aggregates of a history with many values of one time, or with removed instances. */
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { AggregateMethod } from '#ngsi-ld/history/aggregate.ts'
import type { TimedInstance } from '#ngsi-ld/history/temporal-query.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { parseDuration } from '#ngsi-ld/values/duration.ts'
import { immortalWriter, type OpenBroker, openBroker, temporaryFolder } from '#test/kit/broker.ts'

const writer = immortalWriter()
afterAll(() => writer.end())

const epoch = Date.UTC(2026, 0, 1)
const id = 'urn:x:1'
const level = (value: number, second: number): AttributeInstance =>
  ({ type: 'Property', value, observedAt: msToDateTime(epoch + second * 1000) }) as AttributeInstance

let open: OpenBroker
let remove: () => void
beforeEach(async () => {
  const place = temporaryFolder()
  remove = place.remove
  open = await openBroker(place.folder, { writer })
})
afterEach(async () => {
  await open.close()
  remove()
})

const append = (value: number, second: number) =>
  open.broker.temporal.append(
    id,
    { types: undefined, attributes: new Map([['level', [level(value, second)]]]) },
    'http',
  )
const instances = (query: object): readonly TimedInstance[] =>
  open.broker
    .history(id, { timeproperty: 'observedAt', limit: 1_000_000, ...query })
    ?.attributes.get('level') ?? []

test.each([undefined, 9])('an answer that is cut holds all of its first time, lastN %s', async (lastN) => {
  await open.broker.create({ id, type: 'T', level: level(0, 5) }, 'http')
  for (const value of [1, 2, 3]) await append(value, 5)
  await append(4, lastN === undefined ? 6 : 4)
  const values = instances({ limit: 1, lastN }).map(({ instance }) => instance.value)
  expect(values).toEqual(lastN === undefined ? [0, 1, 2, 3, 4] : [0, 1, 2, 3])
})

test('an aggregate of the time before the first value is empty', async () => {
  await open.broker.create({ id, type: 'T', level: level(0, 0) }, 'http')
  await append(1, 0)
  await open.upkeep(31 * 60_000)
  await open.broker.temporal.removeInstance(id, 'level', instances({})[0]!.instanceId)
  const query = { timeproperty: 'observedAt', timerel: 'before', timeAtMs: epoch, limit: 1 } as const
  const methods = new Set<AggregateMethod>(['max'])
  const found = await open.broker.temporal.aggregate(id, {
    ...query,
    methods,
    duration: parseDuration('P1M'),
  })
  expect(found?.attributes).toEqual(new Map())
})
