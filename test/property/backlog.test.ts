/**
 * The backlog of an endpoint against a plain model. In any order of commits, late announcements, early reads,
 * sends, returns, drops, unloads and settlements, every delivery is sent in the order of its pair. It is
 * never in flight twice at once, and is finally either settled or dropped.
 */
import BetterSqlite3 from 'better-sqlite3'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Backlog } from '#delivery/backlog.ts'
import type { Flight } from '#delivery/queue.ts'
import { migrations } from '#store/file/database-schema.ts'
import { createDeliveries, type Delivery, deliveryWrites } from '#store/tables/delivery-rows.ts'
import { runs } from '#test/kit/runs.ts'

type Step =
  | { kind: 'commit'; count: number; spread: number; bytes: number; isBatch: boolean }
  | { kind: 'announce' }
  | { kind: 'unload' }
  | { kind: 'reread' }
  | { kind: 'write' }
  | { kind: 'take'; count: number }
  | { kind: 'finish'; pick: number }
  | { kind: 'fail'; pick: number }
  | { kind: 'pause'; pick: number }
  | { kind: 'move'; entity: number }
  | { kind: 'drop'; count: number }

const steps = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('commit' as const),
      count: fc.nat(400),
      spread: fc.integer({ min: 1, max: 5 }),
      bytes: fc.constantFrom(1, 5000),
      isBatch: fc.boolean(),
    }),
    fc.record({ kind: fc.constantFrom('announce', 'announce', 'write', 'unload', 'reread') }),
    fc.record({ kind: fc.constant('take' as const), count: fc.nat(6) }),
    fc.record({ kind: fc.constantFrom('finish', 'finish', 'fail', 'pause'), pick: fc.nat(10) }),
    fc.record({ kind: fc.constant('move' as const), entity: fc.nat(4) }),
    fc.record({ kind: fc.constant('drop' as const), count: fc.nat(100) }),
  ) as fc.Arbitrary<Step>,
  { minLength: 20, maxLength: 60 },
)

const endpoint = 'http://e/'

/** The real backlog over a real table, with a model to compare. */
function createScene() {
  const database = new BetterSqlite3(':memory:')
  for (const { sql } of migrations) database.exec(sql)
  const insert = database.prepare(deliveryWrites['delivery.insert'])
  const settle = database.prepare(deliveryWrites['delivery.settle'])
  const move = database.prepare('UPDATE delivery SET endpoint = ? WHERE entity = ?')
  const pending = new Set<number>()
  const backlog = new Backlog({ reads: createDeliveries(database), pending }, endpoint, 0)
  const unsettled = new Map<number, string>()
  const flights: Flight[] = []
  let unannounced: Delivery[] = []
  let last = 0

  function land(pick: number): Flight | undefined {
    return flights.splice(pick % Math.max(flights.length, 1), 1)[0]
  }
  const scene = {
    backlog,
    unsettled,
    flights,
    commit({ count, spread, bytes, isBatch }: Step & { kind: 'commit' }) {
      const batch = isBatch ? last + 1 : null
      for (let i = 0; i < count; i++) {
        const delivery = {
          d: ++last,
          sub: 1,
          endpoint,
          entity: `urn:${i % spread}`,
          at: 0,
          batch,
          stream: null,
          t: null,
          value: null,
          body: 'x'.repeat(bytes),
        }
        insert.run(...Object.values(delivery))
        unsettled.set(delivery.d, delivery.entity)
        unannounced.push(delivery)
      }
    },
    announce() {
      for (const delivery of unannounced) backlog.announce(delivery, true)
      unannounced = []
    },
    take(now: number) {
      const together = backlog.next(now)
      for (const flight of together) {
        const { d, entity } = flight.delivery
        const first = [...unsettled].find(([, other]) => other === entity)?.[0]
        expect(d, `the first unsettled of ${entity}`).toBe(first)
        expect(flight.delivery.batch).toBe(together[0]!.delivery.batch)
        flights.push(flight)
      }
      return together.length > 0
    },
    finish(pick: number) {
      const flight = land(pick)
      if (flight === undefined) return false
      unsettled.delete(flight.delivery.d)
      pending.add(flight.delivery.d)
      backlog.finish(flight)
      return true
    },
    putBack(pick: number, pausedUntil?: number) {
      const flight = land(pick)
      if (flight !== undefined) backlog.putBack(flight, pausedUntil)
    },
    drop(count: number) {
      for (const { d } of backlog.dropOldest(Math.max(0, backlog.waiting() - count))) {
        expect(unsettled.delete(d)).toBe(true)
        pending.add(d)
      }
    },
    /** Assigns the deliveries of an entity to another endpoint. */
    move(entity: number) {
      scene.announce()
      move.run('http://other/', `urn:${entity}`)
      for (const [d, other] of unsettled) if (other === `urn:${entity}`) unsettled.delete(d)
      backlog.reread()
    },
    /**
     * Waits until the settlement is on disk; commits are announced in order, so all earlier ones are on disk
     * too.
     */
    write() {
      scene.announce()
      settle.run(JSON.stringify([...pending]))
      pending.clear()
    },
  }
  return scene
}

function run(scene: ReturnType<typeof createScene>, step: Step): void {
  if (step.kind === 'commit') scene.commit(step)
  else if (step.kind === 'announce') scene.announce()
  else if (step.kind === 'write') scene.write()
  else if (step.kind === 'unload') scene.backlog.unload()
  else if (step.kind === 'reread') scene.backlog.reread()
  else if (step.kind === 'take') for (let i = 0; i < step.count; i++) scene.take(0)
  else if (step.kind === 'finish') scene.finish(step.pick)
  else if (step.kind === 'fail') scene.putBack(step.pick)
  else if (step.kind === 'pause') scene.putBack(step.pick, 1)
  else if (step.kind === 'move') scene.move(step.entity)
  else scene.drop(step.count)
}

it('stores every delivery, in order, exactly once in memory', () => {
  fc.assert(
    fc.property(steps, (list) => {
      const scene = createScene()
      for (const step of list) run(scene, step)
      scene.announce()
      expect(scene.backlog.waiting()).toBe(scene.unsettled.size)
      // If nothing can be sent in a turn, complete the deliveries in flight; if there are none, all must be
      // done.
      while (scene.take(Number.MAX_VALUE) || scene.backlog.isReading() || scene.finish(0));
      expect([scene.unsettled.size, scene.backlog.waiting(), scene.backlog.held()]).toEqual([0, 0, 0])
    }),
    { numRuns: runs(60) },
  )
})
