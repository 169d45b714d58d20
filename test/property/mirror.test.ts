/**
 * An observation from another gateway with its time in sosa:resultTime is stored as an observation. Whatever
 * else is written, state and history equal those of a broker that stores it as a change of the document. (A
 * value that becomes current in another way also gets its time in that attribute, as at the gateway of
 * origin.)
 */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { ChangeOrigin } from '#broker/state/stored-entity.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { mirrorName } from '#ngsi-ld/entity/mirror.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { ages, immortalWriter, type OpenBroker, openBroker, temporaryFolder } from '#test/kit/broker.ts'

const writers = [immortalWriter(), immortalWriter()] as const
afterAll(async () => {
  for (const writer of writers) await writer.end()
})

const id = 'urn:x:a'
const epoch = Date.UTC(2026, 0, 1)
const time = (t: number): string => msToDateTime(epoch + t * 1000)
const value = (v: number, t: number): AttributeInstance => ({
  type: 'Property',
  value: v,
  observedAt: time(t),
})
const shown = (t: number): AttributeInstance => ({ type: 'Property', value: time(t) })

type Op =
  | readonly ['both', v: number, t: number]
  | readonly ['apart', v: number, t: number]
  | readonly ['shown', t: number]
  | readonly ['past', v: number, t: number]
  | readonly ['other', v: number]
  | readonly ['drop']
  | readonly ['upkeep']
  | readonly ['restart']

const small = fc.nat(6)
const ops: fc.Arbitrary<readonly Op[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.tuple(fc.constant('both' as const), small, fc.nat(30)) },
    fc.tuple(fc.constant('apart' as const), small, fc.nat(30)),
    fc.tuple(fc.constant('shown' as const), fc.nat(30)),
    fc.tuple(fc.constant('past' as const), small, fc.nat(30)),
    fc.tuple(fc.constant('other' as const), small),
    fc.constant(['drop'] as const),
    fc.constant(['upkeep'] as const),
    fc.constant(['restart'] as const),
  ),
  { maxLength: 15 },
)

async function write({ broker }: OpenBroker, by: ChangeOrigin, op: Op): Promise<void> {
  const put = (attributes: Readonly<Record<string, AttributeInstance>>): Promise<unknown> =>
    broker.batchUpsert([{ id, type: 'T', ...attributes } as Entity], { update: true, by })
  if (op[0] === 'both') await put({ v: value(op[1], op[2]), [mirrorName]: shown(op[2]) })
  else if (op[0] === 'apart') await put({ v: value(op[1], op[2]), [mirrorName]: shown(op[2] + 1) })
  else if (op[0] === 'shown') await put({ [mirrorName]: shown(op[1]) })
  else if (op[0] === 'other') await put({ o: { type: 'Property', value: op[1] } })
  else if (op[0] === 'past')
    await broker.temporal.append(id, { attributes: new Map([['v', [value(op[1], -1 - op[2])]]]) }, by)
  else if (op[0] === 'drop') await broker.deleteAttribute(id, 'o', { deleteAll: false, by }).catch(() => {})
}

function stateAndHistory({ broker }: OpenBroker): unknown {
  const query = { timeproperty: 'observedAt', attrs: new Set(['v']), limit: 1000 } as const
  const instances = broker.history(id, query)?.attributes.get('v') ?? []
  return {
    entity: broker.retrieve(id)?.entity(),
    history: instances
      .map(({ instance }) => `${instance.observedAt} ${JSON.stringify(instance.value)}`)
      .toSorted(),
  }
}

test('a value with its time in another attribute is stored as an observation without other effects', async () => {
  let adopted = 0
  await fc.assert(
    fc.asyncProperty(ops, async (all) => {
      const folders = [temporaryFolder(), temporaryFolder()] as const
      const open = (i: 0 | 1) => openBroker(folders[i].folder, { writer: writers[i] })
      const brokers = [await open(0), await open(1)]
      const hands = ['via:site', 'http'] as const
      for (const op of [['both', 0, 0] as const, ...all]) {
        for (const i of [0, 1] as const) {
          if (op[0] === 'upkeep') await brokers[i]!.upkeep(ages)
          else if (op[0] === 'restart') {
            await brokers[i]!.close()
            brokers[i] = await open(i)
          } else await write(brokers[i]!, hands[i], op)
        }
        expect(stateAndHistory(brokers[0]!)).toEqual(stateAndHistory(brokers[1]!))
      }
      adopted += brokers[0]!.inside.following.streamOf(1)?.mirror === mirrorName ? 1 : 0
      expect(brokers[1]!.inside.following.streamOf(1)?.mirror).toBeUndefined()
      for (const i of [0, 1] as const) {
        await brokers[i]!.close()
        folders[i].remove()
      }
    }),
    {
      numRuns: 12,
      examples: [
        [
          [
            ['both', 0, 3],
            ['apart', 0, 2],
          ],
        ],
      ],
    },
  )
  expect(adopted).toBeGreaterThan(0)
})
