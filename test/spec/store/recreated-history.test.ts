/**
 * An id has one history across all lives of its entity. An observation repeated in several lives, or after
 * its attribute was deleted, is returned and aggregated once, from chunks and from tails. A device with the
 * same id continues it.
 */
import { expect, test } from 'vitest'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { AggregateMethod } from '#ngsi-ld/history/aggregate.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { parseDuration } from '#ngsi-ld/values/duration.ts'
import { ages, historyOf, observe } from '#test/kit/broker.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'

const open = brokerOfFile()
const id = 'urn:x:1'
const start = Date.UTC(2025, 0, 1)
const at = (second: number): number => start + second * 1000
const level = (second: number, value = second): AttributeInstance =>
  ({ type: 'Property', value, observedAt: msToDateTime(at(second)) }) as AttributeInstance
const seconds = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

const create = (second: number): Promise<void> =>
  open.broker.create({ id, type: 'T', level: level(second) }, 'http')
async function observeAll(from: number, to: number): Promise<void> {
  await Promise.all(seconds(from, to).map((second) => observe(open, id, 'level', at(second), second)))
}

async function expectOnce(count: number): Promise<void> {
  const all = seconds(0, count)
  expect(historyOf(open, id, 'level').map(([time]) => time)).toEqual(all.map(at))
  const last = open.broker.history(id, { timeproperty: 'observedAt', lastN: 5, limit: 3 })
  expect(last?.attributes.get('level')?.map(({ instance }) => instance.value)).toEqual(all.slice(-3))
  const written = open.broker.history(id, { timeproperty: 'modifiedAt', limit: 10_000 })
  expect(written?.attributes.get('level')?.filter(({ deletedAt }) => deletedAt === undefined)).toHaveLength(
    count,
  )
  const methods = new Set<AggregateMethod>(['totalCount', 'sum', 'max', 'distinctCount'])
  for (const some of [methods, new Set<AggregateMethod>(['totalCount', 'sum'])]) {
    const query = {
      timeproperty: 'observedAt',
      limit: 1,
      methods: some,
      duration: parseDuration('PT1H'),
    } as const
    const found = await open.broker.temporal.aggregate(id, { ...query, timerel: 'after', timeAtMs: start })
    const sums = found!.attributes.get('level')![0] as unknown as Record<string, [number][]>
    const total = (name: string) => sums[name]!.reduce((sum, [value]) => sum + value, 0)
    expect([total('totalCount'), total('sum')]).toEqual([count, (count * (count - 1)) / 2])
  }
}

/** Whether each life is folded into chunks before it ends, and after it began. */
test.each([
  [false, false],
  [true, false],
  [false, true],
  [true, true],
])(
  'observations of several lives are returned once (folded: %j, %j)',
  async (isFirstFolded, isLastFolded) => {
    await create(0)
    await observeAll(0, 1200)
    if (isFirstFolded) await open.upkeep(ages)
    await open.broker.remove(id, 'http')
    await create(0)
    await observeAll(500, 1500)
    if (isLastFolded) await open.upkeep(ages)
    await expectOnce(1500)
    await open.restart()
    await expectOnce(1500)
    await open.broker.deleteAttribute(id, 'level', { by: 'http', deleteAll: true })
    await open.broker.append(id, { level: level(5) }, { by: 'http', noOverwrite: false })
    await observeAll(1000, 1600)
    await expectOnce(1600)
  },
)

test('an instance removed by its id stays removed in every life', async () => {
  for (const _ of [1, 2]) {
    await create(0)
    await observeAll(0, 4)
    await open.broker.remove(id, 'http')
  }
  await create(0)
  const instances = () =>
    open.broker.history(id, { timeproperty: 'observedAt', limit: 10 })?.attributes.get('level')
  for (const one of [0, 2]) {
    const { instanceId } = instances()!.find(({ instance }) => instance.value === one)!
    await open.broker.temporal.removeInstance(id, 'level', instanceId)
  }
  const { instanceId } = instances()!.find(({ instance }) => instance.value === 1)!
  await open.broker.temporal.replaceInstance(id, 'level', instanceId, level(1, 10))
  expect(instances()?.map(({ instance }) => instance.value)).toEqual([10, 3])
})
