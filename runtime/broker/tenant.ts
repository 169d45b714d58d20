/**
 * One tenant: a database file, its live state, its door and its use-cases, wired in order. Tenants share the writer
 * thread and nothing else.
 */
import type { Clock } from '#base/clock.ts'
import type { Log } from '#base/log.ts'
import type { Metrics } from '#base/metrics.ts'
import { migrate, openReader, type Synchronous } from '#store/database.ts'
import { createDeliveries } from '#store/deliveries.ts'
import { createEntities } from '#store/entities.ts'
import { createHistory } from '#store/history.ts'
import { createRecords } from '#store/records.ts'
import type { Writer } from '#store/writer.ts'
import { createConsume } from './consume.ts'
import { createDocuments } from './documents.ts'
import { createDoor } from './door.ts'
import { evolutionOf } from './evolution.ts'
import { createLiveState } from './live.ts'
import { createMatcher, type CommittedDeliveries } from './matcher.ts'
import { createNames } from './names.ts'
import { createProvision } from './provision.ts'
import { replay } from './replay.ts'
import { createStreams } from './streams.ts'
import { createSubscribe } from './subscribe.ts'
import type { TenantBroker } from './types.ts'
import { createUpkeep } from './upkeep.ts'

export interface TenantPorts {
  readonly name: string
  readonly file: string
  readonly writer: Writer
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Called after the flush with what is now owed to the outside. */
  readonly onDeliveries: CommittedDeliveries
}

export interface TenantSettings {
  readonly lingerMs: number
  readonly synchronous: Synchronous
  readonly writebackMs: number
}

/** How often upkeep looks whether a group of its own is due, ms. */
const upkeepEveryMs = 1000

export async function openTenant(ports: TenantPorts, settings: TenantSettings) {
  const { name, file, writer, clock, log, metrics } = ports
  const format = migrate(file)
  if (format.from !== format.to) log.info('store.migrated', { tenant: name, ...format })
  await writer.open(name, file, settings.synchronous)
  const database = openReader(file)

  const records = createRecords(database)
  const entities = createEntities(database)
  const history = createHistory(database)
  const deliveries = createDeliveries(database)

  const names = createNames(records)
  const live = createLiveState()
  const streams = createStreams({ history, names, live })
  const matcher = createMatcher({ deliveries, entities, live, onDeliveries: ports.onDeliveries, tenant: name })
  const documents = createDocuments({ entities, names, streams, onChange: matcher.change })
  const upkeep = createUpkeep({ live, streams, records, metrics, documents: () => documents }, settings)

  const read = replay({ records, entities, history, live, streams })
  log.info('store.replayed', { tenant: name, ...read })
  const door = createDoor(
    { tenant: name, writer, clock, log, metrics, number: records.logLast(), at: read.at, upkeep: upkeep.attach },
    settings,
  )
  const timer = setInterval(() => {
    if (upkeep.isDue()) door.nudge()
  }, upkeepEveryMs)
  timer.unref()

  const subscribe = createSubscribe({ door, records, matcher, clock })
  const provision = createProvision({ door, documents, streams, matcher })
  const consume = createConsume({ database, entities, live, names })
  const broker: TenantBroker = Object.freeze({
    ...provision,
    ...consume,
    history: (id, query) => evolutionOf({ entities, history, records, names, live, streams }, id, query),
    subscriptions: subscribe,
  } satisfies TenantBroker)

  return Object.freeze({
    name,
    file,
    broker,
    door,
    database,
    records,
    deliveries,
    documents,
    streams,
    live,
    matcher,
    subscribe,
    /** For gauges. */
    status: () => ({
      entities: documents.count(),
      liveStreams: live.streamCount(),
      tail: live.tailCount(),
      ...door.status(),
    }),
    /** Finishes the queue, writes live values back, closes the file. */
    async close(): Promise<void> {
      clearInterval(timer)
      await door.close()
      database.close()
      await writer.close(name)
    },
  })
}

export type Tenant = Awaited<ReturnType<typeof openTenant>>

