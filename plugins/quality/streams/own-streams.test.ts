/** Values of the log whose observation entity names its stream later, as an uplink may bring them. */
import { expect, it } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import type { ChangeBatch, ChangesPort, EntityState, Follower } from '#contract'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { createRecordRows } from '#plugins/quality/measures/record-rows.ts'
import { usualProperties, usualTable } from '#plugins/quality/measures/usual-properties.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createConcordances } from './concordances.ts'
import { createDowntimes } from './downtimes.ts'
import { createKnownStreams } from './known-streams.ts'
import { createOwnStreams } from './own-streams.ts'
import { aliveColumn, createStreamStatements, reachColumns, streamTables } from './stream-statements.ts'

const stateOf = (id: string, type: string, more: object = {}): EntityState => ({
  rid: 1,
  id,
  types: [type],
  entity: () => ({ id, type, ...more }) as unknown as Entity,
  text: () => '',
  times: () => ({ created: 0, modified: 0, attributes: {} }),
})

it('counts values that arrived before their observation entity named its stream', async () => {
  const entities = new Map<string, EntityState>()
  const records = createRecordRows()
  const streams = createKnownStreams({
    entityOf: (id) => entities.get(id)?.entity(),
    usual: usualProperties(usualTable({}), 0.8),
    records,
    concordances: createConcordances({ radiusMeters: 1 }),
    leftOut: { hasRoom: () => true, delete: () => undefined },
    monotonic: () => 0,
    now: () => 1_000,
    downtimes: () => [],
    changed: () => undefined,
    removed: () => undefined,
    moved: () => undefined,
  })
  const following = Promise.withResolvers<Follower>()
  const changes = {
    position: () => 0,
    lastCommitAt: () => 0,
    entities: () => [],
    entity: (id) => entities.get(id),
    follow(_, follower) {
      following.resolve(follower)
      return { close: () => undefined }
    },
    async *history() {},
  } satisfies ChangesPort
  const own = createOwnStreams({
    changes,
    streams,
    table: createStreamStatements(createPluginDatabase([streamTables, reachColumns, aliveColumn]), records),
    journal: { included: () => 0, saved: () => () => undefined },
    downtimes: createDowntimes(0),
    clock: systemClock,
    log: { debug() {}, info() {}, warn() {}, error() {} } as never,
    signal: new AbortController().signal,
  })
  await own.start()
  const follower = await following.promise
  const batchOf = (through: number, more: Partial<ChangeBatch>): ChangeBatch => ({
    through,
    at: through,
    changed: [],
    deleted: [],
    observed: [],
    ...more,
  })
  const value = (n: number) => ({
    id: 'o',
    name: sosa.hasSimpleResult,
    dataset: '',
    time: n * 60_000,
    value: n,
    n,
    committed: n,
    isLate: false,
    via: undefined,
  })
  const put = (state: EntityState): EntityState => {
    entities.set(state.id, state)
    return state
  }
  const bare = put(stateOf('o', iotStream.StreamObservation))
  await follower.take(batchOf(2, { changed: [bare], observed: [value(1), value(2)] }))
  const stream = put(stateOf('s', iotStream.IotStream))
  const belongsTo = { type: 'Relationship', object: 's' }
  const placed = put(stateOf('o', iotStream.StreamObservation, { [iotStream.belongsTo]: belongsTo }))
  await follower.take(batchOf(4, { changed: [stream, placed] }))
  await follower.take(batchOf(5, { observed: [value(5)] }))
  expect(streams.get('s')?.record.count).toBe(3)
  await own.close()
})
