/**
 * The broker against a model of plain maps, through the real door, writer thread and SQLite. Writes are mixed
 * with upkeep, failing groups, restarts and a far too small memory; entities, history, queries and pending
 * notifications must equal the model.
 */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import type { Entity, Fragment } from '#ngsi-ld/entity/entity.ts'
import { type GeoQuery, parseGeoQuery } from '#ngsi-ld/query/geo-query.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import {
  ages,
  immortalWriter,
  type OpenBroker,
  openBroker,
  settableClock,
  temporaryFolder,
} from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { runs } from '#test/kit/runs.ts'
import {
  type Attributes,
  apply,
  copyOf,
  emptyModel,
  type Given,
  identityOf,
  type Model,
  type Op,
  repeated,
} from './broker-model.ts'

// ---- Limits so low that all their effects occur

setLimit('streamsLiveMax', 2)
setLimit('chunkObservations', 6)
setLimit('chunkPartialMin', 4)
setLimit('foldedPerGroup', 20)
setLimit('writebacksPerGroup', 2)
setLimit('logBytesMax', 2000)
// Batches of one step should share a group.
setLimit('batchSlicesMax', 100)
afterAll(restoreLimits)

const writer = immortalWriter()
afterAll(() => writer.end())

// ---- Conversion from the model to the broker

const epoch = Date.UTC(2026, 0, 1)
const ids = ['urn:x:a', 'urn:x:b', 'urn:x:c']
const names = ['t', 'h', 'place'] as const
const units = [undefined, 'CEL', 'FAH'] as const

const point = (x: number): GeoQuery['geometry'] => ({ type: 'Point', coordinates: [x, 0] })

function instance(name: string, { value, t, unit }: Given): Record<string, unknown> {
  return {
    type: name === 'place' ? 'GeoProperty' : 'Property',
    value,
    ...(t === undefined ? {} : { observedAt: msToDateTime(epoch + t * 1000) }),
    ...(unit === undefined ? {} : { unitCode: unit }),
  }
}

const fragment = (attributes: Attributes): Fragment =>
  Object.fromEntries(
    Object.entries(attributes).map(([name, given]) => [name, instance(name, given)]),
  ) as unknown as Fragment

const entity = (id: string, attributes: Attributes): Entity => ({ id, type: 'T', ...fragment(attributes) })

function perform({ broker, main }: OpenBroker, model: Model, op: Op): Promise<unknown> {
  const by = 'http'
  switch (op.op) {
    case 'create':
      return broker.create(entity(op.id, op.attributes), by)
    case 'patch':
      return broker.update(op.id, fragment(op.attributes), { appendMissing: true, by })
    case 'upsert':
      return broker.batchUpsert([entity(op.id, op.attributes)], { update: op.update, by }).then((result) => {
        if (result.errors.length > 0) throw result.errors[0]!.error
      })
    case 'drop':
      return broker.deleteAttribute(op.id, op.name, { deleteAll: false, by })
    case 'remove':
      return broker.remove(op.id, by)
    default: {
      const { t, value } = op.op === 'observe' ? op : repeated(model, op.id, op.name, op.n)!
      return main.door.commit((stage) => {
        const draft = main.documents.find(stage, op.id)
        if (draft === undefined) throw new GatewayError('ngsi-ld.not-found', 'no entity')
        const stream = main.streams.open(stage, draft, op.name, '')
        main.observer.observeStream(stage, stream, epoch + t * 1000, value, false)
      })
    }
  }
}

const near = parseGeoQuery(
  { georel: 'near;maxDistance==200000', geometry: 'Point', coordinates: '[0,0]', geoproperty: 'place' },
  (term) => term,
)

// ---- State to compare

function expectEntities({ broker }: OpenBroker, model: Model): void {
  for (const id of ids) {
    const view = broker.retrieve(id)
    const attributes = model.entities.get(id)
    expect(view?.entity()).toEqual(attributes && entity(id, Object.fromEntries(attributes)))
    if (view === undefined) continue
    expect(JSON.parse(view.text())).toEqual(view.entity())
    const times = view.times()
    expect(Object.keys(times.attributes).toSorted()).toEqual([...attributes!.keys()].toSorted())
    for (const [created, modified] of Object.values(times.attributes)) {
      expect(created).toBeLessThanOrEqual(modified)
      expect(created).toBeGreaterThanOrEqual(times.created)
      expect(modified).toBeLessThanOrEqual(times.modified)
    }
  }
}

function expectHistory({ broker }: OpenBroker, model: Model): void {
  for (const id of ids) {
    const result = broker.history(id, { timeproperty: 'observedAt', limit: 10_000 })
    const past = model.history.get(id)
    if (past === undefined) {
      expect(result).toBeUndefined()
      continue
    }
    const instances = [...result!.attributes].flatMap(([name, list]) => list.map((one) => ({ name, ...one })))
    const keys = instances.map(({ name, observedAt, instance: { value } }) => {
      return `${name} ${identityOf((observedAt! - epoch) / 1000, value!)}`
    })
    expect([...new Set(keys)].toSorted()).toEqual([...past.keys()].toSorted())
    for (const [i, key] of keys.entries()) {
      expect([...past.get(key)!.units]).toContain(instances[i]!.instance.unitCode)
    }
    const instanceIds = instances.map(({ instanceId }) => instanceId)
    expect(new Set(instanceIds).size).toBe(instanceIds.length)
  }
}

function expectQueries({ broker }: OpenBroker, model: Model): void {
  const given = [...model.entities]
  const idsWhere = (fits: (attributes: ReadonlyMap<string, Given>) => boolean): string[] =>
    given.filter(([, attributes]) => fits(attributes)).map(([id]) => id)
  const page = { limit: 10, offset: 0, count: true }
  const found = (query: object): string[] => {
    const { entities, count } = broker.queryAtOnce({ ...page, ...query })
    expect(count).toBe(entities.length)
    return entities.map(({ id }) => id)
  }
  const q = (text: string): object => ({ q: parseQuery(text, (term) => term) })
  const isOver = (value: unknown): boolean => typeof value === 'number' && value > 5
  expect(found({ selection: { kind: 'type', name: 'T' } })).toEqual(given.map(([id]) => id))
  expect(found(q('t>5'))).toEqual(idsWhere((all) => isOver(all.get('t')?.value)))
  expect(found(q('t==3|h>5'))).toEqual(
    idsWhere((all) => all.get('t')?.value === 3 || isOver(all.get('h')?.value)),
  )
  expect(found(q('!h'))).toEqual(idsWhere((all) => !all.has('h')))
  // A degree is 111 km.
  const lon = (given: Given | undefined): number =>
    (given?.value as { coordinates: [number] } | undefined)?.coordinates[0] ?? Number.POSITIVE_INFINITY
  expect(found({ geo: near })).toEqual(idsWhere((all) => lon(all.get('place')) <= 1))
  expect(found({ attrs: ['place'] })).toEqual(idsWhere((all) => all.has('place')))
}

async function expectAll(open: OpenBroker, model: Model): Promise<void> {
  expectEntities(open, model)
  expectHistory(open, model)
  expectQueries(open, model)
  expect(open.main.database.prepare('SELECT count(*) FROM delivery').pluck().get()).toBe(model.deliveries)
  expect(open.main.status().entities).toBe(model.entities.size)
  expect(open.logged.filter(({ event }) => event === 'gateway.fault')).toEqual([])
}

// ---- Steps

/** Operations submitted at once, and their circumstances. */
interface Step {
  readonly ops: readonly Op[]
  /** Restart first; or wait so long that upkeep runs together with the writes. */
  readonly first: 'nothing' | 'restart' | 'age' | 'minute'
  /** The group fails because of a foreign operation in it, and is retried one by one; or the disk is full. */
  readonly fate: 'good' | 'spoilt' | 'full'
}

const id = fc.constantFrom(...ids)
const name = fc.constantFrom(...names)
const valueFor = (of: string): fc.Arbitrary<Given['value']> =>
  of === 'place'
    ? fc.integer({ min: 0, max: 4 }).map((x) => point(x) as never)
    : fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constantFrom('on', 'off'))
const givenOf = (of: string): fc.Arbitrary<Given> =>
  fc.record({
    value: valueFor(of),
    t: fc.option(fc.integer({ min: 0, max: 40 }), { nil: undefined, freq: 4 }),
    unit: fc.constantFrom(...(of === 'place' ? [undefined] : units)),
  })
const attributes = fc.record(
  { t: givenOf('t'), h: givenOf('h'), place: givenOf('place') },
  { requiredKeys: [] },
) as fc.Arbitrary<Attributes>
let fresh = 0
const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ op: fc.constant('create'), id, attributes }) },
  { weight: 5, arbitrary: fc.record({ op: fc.constant('patch'), id, attributes }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('upsert'), id, attributes, update: fc.boolean() }) },
  {
    weight: 10,
    arbitrary: fc
      .record({ id, name, t: fc.integer({ min: 0, max: 40 }) })
      .map(({ id: of, name: what, t }) => {
        // No two are equal, so that none is a repetition.
        const value = ++fresh / 8 + 10
        return {
          op: 'observe' as const,
          id: of,
          name: what,
          t,
          value: what === 'place' ? (point(value) as never) : value,
        }
      }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('again'), id, name, n: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('drop'), id, name }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('remove'), id }) },
) as fc.Arbitrary<Op>

const step: fc.Arbitrary<Step> = fc.record({
  ops: fc.array(op, { minLength: 1, maxLength: 5 }),
  first: fc.oneof(
    { weight: 6, arbitrary: fc.constant('nothing') },
    { weight: 1, arbitrary: fc.constant('restart') },
    { weight: 2, arbitrary: fc.constant('age') },
    { weight: 2, arbitrary: fc.constant('minute') },
  ),
  fate: fc.oneof(
    { weight: 8, arbitrary: fc.constant('good') },
    { weight: 1, arbitrary: fc.constant('spoilt') },
    { weight: 1, arbitrary: fc.constant('full') },
  ),
}) as fc.Arbitrary<Step>

const full = new GatewayError('store.full', 'the disk is full')

async function answerOf(action: Promise<unknown>): Promise<string> {
  try {
    await action
    return 'ok'
  } catch (error) {
    if (isGatewayError(error)) return error.code.replace('ngsi-ld.', '')
    throw error
  }
}

/** Runs a step on both; returns the new state of the model. */
async function run(open: OpenBroker, model: Model, { ops, first, fate }: Step): Promise<Model> {
  if (first === 'age') open.clock.pass(ages)
  if (first === 'minute') open.clock.pass(61_000)
  const next = copyOf(model)
  const expected: string[] = []
  const actions: Promise<string>[] = []
  // A busy board may accept concurrent submissions in more than one group.
  if (fate === 'full') open.refuseGroups(() => full)
  if (fate === 'spoilt') {
    const bad = open.main.door.commit((stage) => stage.write('subscription.insert', 1, null, null, null))
    actions.push(answerOf(bad))
    expected.push('store.failed')
  }
  for (const one of ops) {
    const past = copyOf(next)
    const answer = apply(next, one)
    if (answer === undefined) continue
    expected.push(answer)
    actions.push(answerOf(perform(open, past, one)))
  }
  const answers = await Promise.all(actions)
  open.refuseGroups(() => undefined)
  if (answers.includes('store.full')) return model
  expect(answers).toEqual(expected)
  return next
}

test('a broker equals its model', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }), async (steps) => {
      const { folder, remove } = temporaryFolder()
      const clock = settableClock()
      let open = await openBroker(folder, { clock, writer, synchronous: 'OFF' })
      try {
        let model = emptyModel()
        await open.broker.subscriptions.create({
          id: 'urn:x:s',
          notificationTrigger: ['attributeCreated', 'attributeUpdated'],
          notification: { endpoint: { uri: 'http://127.0.0.1:9/' } },
          context: [],
        })
        for (const one of steps) {
          if (one.first === 'restart') {
            await open.close()
            open = await openBroker(folder, { clock, writer, synchronous: 'OFF' })
            await expectAll(open, model)
          }
          model = await run(open, model, one)
          await expectAll(open, model)
        }
      } finally {
        await open.close()
        remove()
      }
    }),
    { numRuns: runs(20), endOnFailure: false },
  )
})
