/**
 * A follower of each observation receives every observation once: whatever is written in which order, whether
 * the follower fails, is slow or restarts with the broker. Beyond the log it reads the same from history.
 */
import fc from 'fast-check'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import type { ChangeBatch, Observation, PastObservation } from '#contract'
import { createChanges } from '#host/changes.ts'
import { createSharedLog } from '#host/shared-log.ts'
import type { Entity, Fragment } from '#ngsi-ld/entity/entity.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { historyOf, type OpenBroker, observe, openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { runs } from '#test/kit/runs.ts'

const start = Date.UTC(2026, 0, 1)
const ids = ['urn:x:0', 'urn:x:1', 'urn:x:2']
const names = ['a', 'b']

const time = fc.integer({ min: 0, max: 20 }).map((n) => start + n * 1000)
const value = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom('on', 'off'))
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('observe' as const),
      id: fc.constantFrom(...ids),
      name: fc.constantFrom(...names),
      time,
      value,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      id: fc.constantFrom(...ids),
      name: fc.constantFrom(...names),
      time,
      value,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fail' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
)

const key = ({ id, name, time, value }: PastObservation): string =>
  [id, name, time, JSON.stringify(value)].join(' ')

beforeEach(() => setLimit('pluginRestMs', 1))
afterEach(restoreLimits)

/** What a follower stores in one transaction: its cursor, and what it derived up to there. */
interface Stored {
  cursor: number
  readonly received: Observation[]
}

function followOn(open: OpenBroker, stored: Stored, failures: { left: number }) {
  const changes = createChanges(
    {
      following: open.main.following,
      shared: createSharedLog(open.main.following),
      onCommit: open.main.door.onCommit,
      clock: open.clock,
      log: createLog({ level: 'error', clock: open.clock, write: () => undefined }),
    },
    { name: 'each', disable: (error) => expect.unreachable(String(error)) },
  )
  const follower = changes.follow(stored.cursor, {
    observes: 'each',
    take({ observed, through }: ChangeBatch) {
      if (failures.left > 0) {
        failures.left--
        throw new Error('fails before it stores anything')
      }
      stored.received.push(...observed)
      stored.cursor = through
    },
    readAnew: () => expect.unreachable('the log reaches back to the cursor'),
  })
  return { changes, follower }
}

it('a follower of each observation misses and doubles none, over failures and restarts', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      const temporary = temporaryFolder()
      let open = await openBroker(temporary.folder)
      const stored: Stored = { cursor: 0, received: [] }
      const failures = { left: 0 }
      /** How often each observation was written: the log holds one twice that a client sends again. */
      const written = new Map<string, number>()
      const note = (one: PastObservation): void =>
        void written.set(key(one), (written.get(key(one)) ?? 0) + 1)
      let following = followOn(open, stored, failures)
      try {
        for (const id of ids) await open.broker.create({ id, type: 'T' } as Entity, 'http')
        for (const one of steps) {
          if (one.kind === 'fail') failures.left = 1
          else if (one.kind === 'restart') {
            following.follower.close()
            await open.close()
            open = await openBroker(temporary.folder)
            following = followOn(open, stored, failures)
          } else {
            const isNew = open.broker.retrieve(one.id)!.entity()[one.name] === undefined
            if (isNew !== (one.kind === 'append')) continue
            note({ ...one, dataset: '' })
            if (isNew) await append(open, one)
            else await observe(open, one.id, one.name, one.time, one.value)
          }
        }
        failures.left = 0
        await expect.poll(() => stored.cursor, { interval: 5 }).toBe(following.changes.position())
        const known = ids.flatMap((id) =>
          names.flatMap((name) =>
            historyOf(open, id, name).map(([time, value]) =>
              key({ id, name, dataset: '', time, value: value as number }),
            ),
          ),
        )
        const received = Map.groupBy(stored.received, key)
        expect([...received.keys()].toSorted()).toEqual(known.toSorted())
        for (const [one, times] of received) expect(times.length).toBeLessThanOrEqual(written.get(one)!)
        const past: PastObservation[] = []
        for await (const slice of following.changes.history({ from: 0, to: Number.MAX_SAFE_INTEGER }))
          past.push(...slice)
        expect([...new Set(past.map(key))].toSorted()).toEqual(known.toSorted())
      } finally {
        following.follower.close()
        await open.close()
        temporary.remove()
      }
    }),
    { numRuns: runs(12) },
  )
})

/** Adds the attribute: the first observation of a stream is part of a change. */
async function append(
  open: OpenBroker,
  { id, name, time, value }: Pick<Observation, 'id' | 'name' | 'time' | 'value'>,
): Promise<void> {
  const fragment = { [name]: { type: 'Property', value, observedAt: msToDateTime(time) } }
  await open.broker.append(id, fragment as Fragment, { by: 'http', noOverwrite: false })
}
